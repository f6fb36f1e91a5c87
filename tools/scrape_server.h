#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "port_counts.h"

namespace ringbolt::tools {

/// What a page of ours answers: HTTP status 200 or 503.
struct Page {
  bool is_whole = true;
  std::string text;
};

/// A socket that listens at "127.0.0.1:9315" or "[::1]:0" (any free port). Throws UsageError that names `option`.
/// Of a name the first address that the name service tells; it has 5 s for that, and this blocks so long. The caller
/// owns the socket.
base::UniqueFd listen_for_pages(const std::string& option, const std::string& address);
/// "http://127.0.0.1:9315/metrics", of such a socket.
std::string page_address(int listener);
/// Serves `page` at /metrics to who connects to `listener`, as below, until `end` is readable. Throws base::Error.
/// `page` is called on this thread. `end` is looked at between requests, so after six seconds and what `page` takes.
void serve_pages(int listener, int end, const std::function<Page()>& page);

/// Serves `page` at /metrics on `address` ("127.0.0.1:9315", "[::1]:0": any free port) until SIGINT, SIGTERM or SIGHUP;
/// asked anew for each request. Says on stdout where it listens. One request at a time, each within a few seconds, so
/// that a client that dawdles keeps the others waiting for no longer. Throws UsageError for an address that can't be
/// listened on. Not thread-safe: it takes the signals of the process.
void serve_page(const std::string& address, const std::function<Page()>& page);

/// The counters in the text form that Prometheus reads (version 0.0.4): for each metric HELP, TYPE and one line a port.
/// Metrics are named after those of node_exporter's infiniband collector; docs/metrics.md lists them. A counter that
/// the kernel has under several names is there once. Thread-safe.
std::string exposition(const std::vector<PortCounts>& ports);

/// The sample that tells which release this is, with which every page begins. Thread-safe; so is the next.
std::string build_exposition();
/// `text` as the value of a label, between its quotes.
std::string escaped_label(const std::string& text);

}  // namespace ringbolt::tools
