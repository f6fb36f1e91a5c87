#pragma once

#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "base/condition.h"
#include "base/unique_fd.h"
#include "bridge/sockets.h"
#include "scrape_server.h"

namespace ringbolt::tools::bridge {

/// Serves what a bridge has counted over HTTP, at /metrics, from a thread of its own: a reader who dawdles holds up no
/// connection. The text is made by the bridge's thread, which is asked for it. Thread-safe but for its end.
class PageThread {
 public:
  /// `where`: ADDRESS:PORT, or the path of a UNIX socket. `ask`: has the bridge's thread call answer(). Throws
  /// UsageError, base::Error.
  PageThread(const std::string& where, std::function<void()> ask);
  ~PageThread();
  PageThread(const PageThread&) = delete;
  PageThread& operator=(const PageThread&) = delete;

  /// "http://127.0.0.1:9316/metrics", "unix:/run/x.sock".
  const std::string& text() const { return text_; }
  bool is_asked();
  void answer(std::string page);

 private:
  int listen(const std::string& where);
  Page page(const std::function<void()>& ask);

  base::Mutex mutex_;
  base::Condition answered_;
  std::string page_ RINGBOLT_GUARDED_BY(mutex_);
  bool is_asked_ RINGBOLT_GUARDED_BY(mutex_) = false;
  std::optional<ListeningSocket> unix_socket_;
  base::UniqueFd tcp_socket_;
  base::UniqueFd end_;
  std::string text_;
  std::thread thread_;
};

}  // namespace ringbolt::tools::bridge
