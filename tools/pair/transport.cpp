#include "pair/transport.h"

#include <array>
#include <cstddef>

namespace ringbolt::tools::pair {

const char* text_of(Transport transport) {
  constexpr std::array kTexts{"RC", "UC", "UD"};
  return kTexts[static_cast<size_t>(transport)];
}

}  // namespace ringbolt::tools::pair
