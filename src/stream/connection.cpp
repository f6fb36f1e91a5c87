// Hot path.
#include "stream/connection.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

#include "base/clock.h"

namespace ringbolt::stream {
namespace {

constexpr size_t kBatch = 16;  // completions that are taken at a time
// 2048 completions.
constexpr uint32_t kMostBatches = 128;  // in one call, so that a peer that never stops can't hold it
// What is copied and sent at a time: the peer reads the first pieces while the next are copied, out of the cache.
constexpr size_t kPieceBytes = 128U << 10U;

ProtocolSettings protocol_settings(Role role, const StreamSettings& settings, const Endpoint& endpoint) {
  ProtocolSettings wanted;
  wanted.role = role;
  wanted.rx_address = reinterpret_cast<uintptr_t>(endpoint.rx().data());
  wanted.rx_length = settings.receive_bytes;
  wanted.rx_buffers = settings.receive_buffers;
  wanted.rx_key = endpoint.rx_key();
  wanted.max_tx_length = settings.max_send_bytes;
  wanted.keepalive_ns = uint64_t{settings.keepalive_ms} * 1'000'000;
  return wanted;
}

}  // namespace

Connection::Connection(const verbs::ConnectionManager& manager, rdma_cm_id* id, Role role,
                       const StreamSettings& settings, MemoryBudget& budget)
    : probe_ns_(role == Role::client ? uint64_t{settings.keepalive_ms} * 1'000'000 : 0),
      endpoint_(manager, id, settings, budget),
      protocol_(protocol_settings(role, settings, endpoint_)) {}

void Connection::established(uint64_t now_ns) {
  protocol_.established(now_ns);
  next_probe_ns_ = probe_ns_ == 0 ? UINT64_MAX : now_ns + probe_ns_;
  pump();
}

void Connection::repost() {
  if (const int error = endpoint_.repost(); error != 0 && !is_broken()) {
    fail(error);
  }
}

bool Connection::progress() {
  std::array<ibv_wc, kBatch> completions;
  bool is_any = false;
  for (uint32_t batch = 0; batch < kMostBatches; ++batch) {
    const auto taken = endpoint_.poll(completions);
    if (!taken) {
      end(CloseReason::work_failed);
      return is_any;
    }
    for (size_t i = 0; i < *taken; ++i) {
      take(completions[i]);
    }
    is_any = is_any || *taken > 0;
    // The queue was empty when that was taken.
    if (*taken < kBatch) {
      break;
    }
  }
  if (is_any && protocol_.wants_attention()) {
    pump();
  }
  return is_any;
}

void Connection::tick(uint64_t now_ns) {
  if (now_ns >= protocol_.next_tick_ns()) {
    protocol_.tick(now_ns);
    pump();
  }
  if (now_ns >= next_probe_ns_) {
    next_probe_ns_ = now_ns + probe_ns_;
    if (is_alive()) {
      post_fence();
    }
  }
}

void Connection::take(const ibv_wc& completion) {
  const Finished done = Endpoint::finished(completion);
  if (completion.status != IBV_WC_SUCCESS) [[unlikely]] {
    take_failure(completion, done);
    return;
  }
  switch (done.kind) {
    case Finished::Kind::receive:
      take_receive(completion, done.slot);
      break;
    case Finished::Kind::command:
      protocol_.finish_command();
      break;
    case Finished::Kind::fence:
      is_fenced_ = false;
      [[fallthrough]];
    case Finished::Kind::write:
      protocol_.finish_write(done.number);
      break;
  }
}

void Connection::take_receive(const ibv_wc& completion, uint32_t slot) {
  if (completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
    // Valkey counts bytes in it, most significant byte first.
    const uint32_t immediate = ntohl(completion.imm_data);
    // The time matters for messages of nothing alone, which are counted.
    protocol_.take_data(immediate, completion.byte_len, immediate == 0 ? base::now_ns() : 0);
  } else if (completion.byte_len != kControlBytes) {
    end(CloseReason::bad_command_length);
  } else {
    // Copied before it is looked at: the slot is the peer's no more, but the next one's soon.
    protocol_.take_command(endpoint_.command(slot, completion.byte_len), base::now_ns());
  }
  ++protocol_.statistics().receives_reposted;
  if (is_alive()) {
    if (const int error = endpoint_.give_back(slot); error != 0 && !is_broken()) {
      fail(error);
    }
  }
}

/// A queue pair that has failed flushes all that is left: the first failure says why.
void Connection::take_failure(const ibv_wc& completion, const Finished& done) {
  if (!is_alive() || failure_ != IBV_WC_SUCCESS) {
    return;
  }
  failure_ = completion.status;
  switch (completion.status) {
    case IBV_WC_WR_FLUSH_ERR:  // see is_broken()
      break;
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
      end(CloseReason::peer_lost);
      break;
    case IBV_WC_LOC_LEN_ERR:
      end(done.kind == Finished::Kind::receive ? CloseReason::bad_command_length : CloseReason::work_failed);
      break;
    default:
      end(CloseReason::work_failed);
  }
}

/// Posts what the machine has to say.
void Connection::pump() {
  if (protocol_.wants_sending_buffer() && is_alive()) {
    prepare_sending();
  }
  if (const auto move = protocol_.take_move()) {
    // The ranges may overlap. What was flushed from there may still be read by the device: a peer that announces too
    // early may get bytes twice, and only harms itself.
    std::memmove(endpoint_.tx().data(), &endpoint_.tx()[move->from], move->count);
  }
  while (const auto command = protocol_.next_command()) {
    if (const int error = endpoint_.post_command(*command)) {
      fail(error);
    }
  }
}

void Connection::prepare_sending() {
  const auto made = endpoint_.make_tx(protocol_.tx_length());
  if (made) {
    protocol_.begin_sending();
  } else {
    end(CloseReason::over_budget);
  }
}

void Connection::fail(int error) {
  post_error_ = post_error_ == 0 ? error : post_error_;
  end(CloseReason::work_failed);
}

std::array<std::span<const std::byte>, 2> Connection::peek() const {
  const std::span<const std::byte> ring = endpoint_.rx();
  const uint32_t first = protocol_.contiguous();
  return {ring.subspan(protocol_.rx_offset(), first), ring.first(protocol_.unread() - first)};
}

void Connection::consume(uint32_t count) {
  protocol_.consume(count);
  if (protocol_.has_command()) {
    pump();
  }
}

/// Into the sending buffer, which has room for all of it.
void Connection::fill(std::span<const std::byte> data) {
  const uint32_t offset = protocol_.tx_offset();
  std::memcpy(&endpoint_.tx()[offset], data.data(), data.size());
  protocol_.fill(static_cast<uint32_t>(data.size()));
}

/// What was filled in, as one message; returns its bytes, 0 if there is no place in the queue.
uint64_t Connection::post_filled() {
  const auto write = protocol_.flush();
  if (!write) {
    return 0;
  }
  if (const int error = endpoint_.post_write(*write, &endpoint_.tx()[write->offset], endpoint_.tx_key())) {
    fail(error);
  }
  return write->length;
}

std::span<std::byte> Connection::room() {
  if (can_write()) {
    return endpoint_.tx().subspan(protocol_.tx_offset(), protocol_.room());
  }
  protocol_.note_stall(base::now_ns());
  return {};
}

bool Connection::send(std::span<const std::byte> filled) {
  const std::span<std::byte> place = room();
  const std::span<const std::byte> buffer = place.empty() ? std::span<const std::byte>() : endpoint_.tx();
  if (filled.size() > place.size() || filled.data() < buffer.data() ||
      filled.data() + filled.size() > buffer.data() + buffer.size()) {
    return false;
  }
  if (filled.data() != place.data()) {
    std::memmove(place.data(), filled.data(), filled.size());
  }
  protocol_.fill(static_cast<uint32_t>(filled.size()));
  post_filled();
  return true;
}

uint64_t Connection::write(std::span<const iovec> pieces, uint64_t skipped) {
  uint64_t written = 0;
  size_t at = 0;
  for (; at < pieces.size() && skipped >= pieces[at].iov_len; ++at) {
    skipped -= pieces[at].iov_len;
  }
  while (at < pieces.size() && can_write()) {
    // Small pieces gather in one message.
    size_t gathered = 0;
    while (at < pieces.size() && gathered < kPieceBytes && protocol_.room() > 0) {
      const auto* data = static_cast<const std::byte*>(pieces[at].iov_base) + skipped;
      const size_t left = pieces[at].iov_len - skipped;
      const size_t count = std::min({left, kPieceBytes - gathered, size_t{protocol_.room()}});
      if (count > 0) {
        fill({data, count});
      }
      gathered += count;
      skipped = count == left ? 0 : skipped + count;
      at += count == left ? 1 : 0;
    }
    const uint64_t posted = post_filled();
    if (posted == 0) {
      break;
    }
    written += posted;
  }
  if (at < pieces.size()) {
    protocol_.note_stall(base::now_ns());
  }
  return written;
}

uint64_t Connection::write_registered(std::span<const std::byte> data, uint32_t local_key) {
  uint64_t written = 0;
  while (written < data.size() && can_write()) {
    const auto left = static_cast<uint32_t>(std::min<size_t>(data.size() - written, UINT32_MAX));
    const auto write = protocol_.flush_direct(left, true);
    if (!write) {
      break;
    }
    if (const int error = endpoint_.post_write(*write, &data[written], local_key)) {
      fail(error);
    }
    written += write->length;
    last_registered_ = write->number;
  }
  if (written < data.size()) {
    protocol_.note_stall(base::now_ns());
  }
  return written;
}

bool Connection::is_drained() {
  if (has_written_all()) {
    return true;
  }
  post_fence();
  return false;
}

/// One at a time.
void Connection::post_fence() {
  if (!is_fenced_) {
    is_fenced_ = true;
    if (const int error = endpoint_.post_fence(protocol_.writes_posted())) {
      fail(error);
    }
  }
}

}  // namespace ringbolt::stream
