#include "verbs/refusal.h"

#include <cerrno>
#include <utility>

#include "base/error.h"

namespace ringbolt::verbs {

void refuse(Step step, int error, std::string object) {
  // Providers that return null without an errno mostly lack memory or objects.
  const int known = error == 0 ? ENOMEM : error;
  throw base::Error(known, std::string(name_of(step)), std::move(object), advice(kThisPlatform, step, known));
}

}  // namespace ringbolt::verbs
