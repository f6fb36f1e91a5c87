#pragma once

#include <functional>
#include <string>

namespace ringbolt::tools {

/// What a page of ours answers: HTTP status 200 or 503.
struct Page {
  bool is_whole = true;
  std::string text;
};

/// Serves `page` at /metrics on `address` ("127.0.0.1:9315", "[::1]:0": any free port) until SIGINT, SIGTERM or SIGHUP;
/// asked anew for each request. Says on stdout where it listens. One request at a time, each within a few seconds, so
/// that a client that dawdles keeps the others waiting for no longer. Throws UsageError for an address that can't be
/// listened on. Not thread-safe: it takes the signals of the process.
void serve_page(const std::string& address, const std::function<Page()>& page);

}  // namespace ringbolt::tools
