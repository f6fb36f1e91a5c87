#include "group/messages.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ringbolt::group {
namespace {

/// A long message goes through several transfers, a part each: over several hops, or several cables, more chunks have
/// to be on their way than one transfer has memory for.
constexpr uint64_t kMostMessageTransfers = 4;

}  // namespace

collective::Program message_program(bool is_send, uint64_t bytes, uint32_t element_bytes, uint32_t peer) {
  const uint32_t most = collective::Limits{}.most_chunk_bytes;
  // Whole elements in each chunk, as in all schedules.
  const uint32_t chunk_bytes = most - most % element_bytes;
  const uint64_t window_bytes = uint64_t{chunk_bytes} * collective::kTransferWindow;
  const uint64_t n_transfers = std::clamp<uint64_t>(bytes / window_bytes, 1, kMostMessageTransfers);
  const uint64_t n_chunks = (bytes + chunk_bytes - 1) / chunk_bytes;
  collective::Program program;
  for (uint64_t transfer = 0, at = 0; transfer < n_transfers; ++transfer) {
    const uint64_t end = std::min(bytes, (transfer + 1) * n_chunks / n_transfers * chunk_bytes);
    collective::Source source;
    collective::Target target;
    if (is_send) {
      source.offset = at;
      target.kind = collective::Target::Kind::transfer;
      target.peer = peer;
      target.transfer = static_cast<uint32_t>(transfer);
    } else {
      target.offset = at;
      source.kind = collective::Source::Kind::transfer;
      source.peer = peer;
      source.transfer = static_cast<uint32_t>(transfer);
    }
    program.steps.push_back({end - at, chunk_bytes, {source}, {target}, false});
    at = end;
  }
  return program;
}

void SelfMessages::meet(bool is_send, const std::shared_ptr<Call>& call, std::byte* data, uint64_t bytes) {
  const auto found = ends_.find(call->id().number);
  if (found == ends_.end()) {
    ends_.insert({call->id().number, {is_send, call, data, bytes}});
    return;
  }
  const End other = std::move(found->second);
  ends_.erase(found);
  if (other.call->is_done() || call->is_done()) {
    const Status& why = (other.call->is_done() ? *other.call : *call).status();
    const Status status{ECANCELED,
                        fmt::format("a message of rank {} to itself: its other end failed: {}", rank_, why.text)};
    other.call->finish(status);
    call->finish(status);
  } else if (other.call->signature() != call->signature()) {
    const Call& sent = is_send ? *call : *other.call;
    const Call& awaited = is_send ? *other.call : *call;
    const Status status{EPROTO, fmt::format("rank {} sends itself {}, and awaits {}", rank_, sent.shape().text(),
                                            awaited.shape().text())};
    other.call->finish(status);
    call->finish(status);
  } else {
    if (bytes > 0) {
      // The program may send from where it receives.
      std::memmove(is_send ? other.data : data, is_send ? data : other.data, bytes);
    }
    other.call->finish({});
    call->finish({});
  }
}

Status SelfMessages::timed_out(const Call& call) const {
  const auto end = ends_.find(call.id().number);
  const bool is_send = end != ends_.end() && end->second.is_send;
  return {ETIMEDOUT, fmt::format("{} of rank {} to itself: the deadline has passed, and it has not called {}",
                                 call.shape().text(), rank_, is_send ? "recv()" : "send()")};
}

}  // namespace ringbolt::group
