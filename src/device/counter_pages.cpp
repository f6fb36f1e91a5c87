#include "device/counter_pages.h"

#include <fmt/format.h>

#include "base/debug_log.h"
#include "base/error.h"
#include "base/lock_guard.h"
#include "base/say.h"

namespace ringbolt::device {

std::shared_ptr<cluster::CounterPage> CounterPages::at(const std::string& path, cluster::CounterPage::Port port) {
  const base::LockGuard guard(mutex_);
  auto& page = pages_[path];
  if (page == nullptr && !path.empty()) {
    try {
      page = cluster::CounterPage::open(path, port);
    } catch (const base::Error& error) {
      if (base::is_debug_log_wanted()) {
        base::say(fmt::format("ringbolt: what this program does is not counted: {}\n", error.what()));
      }
    }
  }
  if (page == nullptr) {
    page = cluster::CounterPage::in_own_memory();
  }
  return page;
}

}  // namespace ringbolt::device
