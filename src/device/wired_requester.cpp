// The send queue of a queue pair whose peer is on the network: sends go through the protocol engine, whose packets are
// built here. Hot path: send_wired and take_answers.

#include <sys/random.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/assert.h"
#include "base/clock.h"
#include "base/copy.h"
#include "base/lock_guard.h"
#include "base/remote_access.h"
#include "device/gids.h"
#include "device/limits.h"
#include "device/network.h"
#include "device/queue_pair.h"
#include "device/wired.h"
#include "wire/greeting.h"

namespace ringbolt::device {
namespace {

// Packets taken in at once, so that one busy peer does not starve the others of a completion queue.
constexpr int kMaxAnswersAtOnce = 256;
// A greeting may get lost, and until all is agreed a loss costs more and anybody may send: further tries, further and
// further apart. A stranger hears a few of them.
constexpr uint32_t kMaxGreetingsToStrangers = 6;
constexpr uint32_t kMostPauses = 5;
constexpr uint64_t kFirstGreetingPauseNs = 2'000'000;

// A stream loses nothing and holds its sender up by itself: a queue on the way is no reason to send less, and two rails
// are only kept busy by what fills the buffers of both.
constexpr transport::Congestion::Config kStreamCongestion = {.first_window = transport::kWindowPackets,
                                                             .least_window = transport::kWindowPackets,
                                                             .least_by_delay = transport::kWindowPackets,
                                                             .largest_window = transport::kWindowPackets};
// As far as the receiver's inbox holds (Inbox::kMaxLargePackets), with room for a second sender; reports are not lost,
// but a receiver may take its time to post a receive.
constexpr transport::UcWindow::Config kStreamUcWindow = {
    .packets = 512, .packets_per_report = 64, .patience_ns = 10'000'000'000};

/// Agents find out within a second that a cable or a node is gone, and send what was lost another way.
constexpr uint64_t kOverlayPatienceNs = 3'000'000'000;

ibv_wc_status status_of(transport::RequesterFailure why) {
  using transport::RequesterFailure;
  switch (why) {
    case RequesterFailure::retry_exceeded:
      return IBV_WC_RETRY_EXC_ERR;
    case RequesterFailure::rnr_retry_exceeded:
      return IBV_WC_RNR_RETRY_EXC_ERR;
    case RequesterFailure::remote_invalid_request:
      return IBV_WC_REM_INV_REQ_ERR;
    case RequesterFailure::remote_access:
      return IBV_WC_REM_ACCESS_ERR;
    case RequesterFailure::remote_operation:
      return IBV_WC_REM_OP_ERR;
    case RequesterFailure::local_protection:
      return IBV_WC_LOC_PROT_ERR;
    case RequesterFailure::bad_response:
      return IBV_WC_BAD_RESP_ERR;
  }
  return IBV_WC_GENERAL_ERR;
}

transport::Operation operation_of(const SendRequest& request) {
  transport::Operation operation;
  operation.length = request.length;
  operation.is_solicited = request.is_solicited;
  operation.is_fenced = request.is_fenced;
  operation.remote_address = request.remote_address;
  operation.key = request.key;
  switch (request.opcode) {
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      operation.has_immediate = true;
      operation.immediate = request.immediate;
      [[fallthrough]];
    case IBV_WR_RDMA_WRITE:
      operation.kind = transport::Operation::write;
      break;
    case IBV_WR_RDMA_READ:
      operation.kind = transport::Operation::read;
      break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      operation.kind = transport::Operation::compare_swap;
      operation.compare = request.compare_or_add;
      operation.swap_or_add = request.swap;
      break;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      operation.kind = transport::Operation::fetch_add;
      operation.swap_or_add = request.compare_or_add;
      break;
    case IBV_WR_SEND_WITH_INV:
      operation.invalidates = true;
      operation.invalidate_key = request.immediate;
      break;
    case IBV_WR_SEND_WITH_IMM:
      operation.has_immediate = true;
      operation.immediate = request.immediate;
      break;
    default:
      break;
  }
  return operation;
}

}  // namespace

/// Where the answers of our requests go. The engine that calls it knows nothing of locks: take_answers() holds ours.
struct QueuePair::AnswerHost {
  QueuePair& qp;

  bool place_read(uint32_t operation, uint32_t offset, std::span<const std::byte> bytes) {
    return place(operation, offset, bytes.data(), static_cast<uint32_t>(bytes.size()));
  }
  bool place_atomic(uint32_t operation, uint64_t value) {
    return place(operation, 0, reinterpret_cast<const std::byte*>(&value), sizeof value);
  }

 private:
  bool place(uint32_t operation, uint32_t offset, const std::byte* bytes, uint32_t length) RINGBOLT_NOT_ANALYSED {
    Pieces pieces;
    const SendRequest& request = qp.send_.requests[qp.place_of(operation)];
    if (!qp.translate({request.pieces, request.pieces_count}, false, IBV_ACCESS_LOCAL_WRITE, pieces)) {
      return false;
    }
    pieces.scatter(offset, bytes, length);
    return true;
  }
};

uint32_t QueuePair::place_of(uint32_t operation) const {
  return requesting()->places[operation & (static_cast<uint32_t>(requesting()->places.size()) - 1)] & entry_mask_;
}

int QueuePair::connect_wired() {
  const ibv_ah_attr& path = attributes_.ah_attr;
  auto wired = std::make_unique<Wired>();
  wired->path.source = address_of(context_.port().addresses()->shown[path.grh.sgid_index]);
  wired->path.destination = address_of(path.grh.dgid);
  wired->path.interface_index = context_.port().netdev_index;
  wired->path.traffic_class = path.grh.traffic_class;
  wired->remote_qpn = attributes_.dest_qp_num;
  wired->mtu_bytes = mtu_bytes(attributes_.path_mtu);
  if (type_ == IBV_QPT_RC) {
    wired->rc_responder.emplace(transport::ResponderConfig{wired->remote_qpn, attributes_.rq_psn, wired->mtu_bytes,
                                                           attributes_.max_dest_rd_atomic, attributes_.min_rnr_timer});
  } else {
    wired->uc_responder.emplace(transport::UcResponderConfig{attributes_.rq_psn, wired->mtu_bytes});
  }
  const bool is_at_stream = !context_.port().streams.empty();
  if (is_at_stream) {  // nobody else speaks there
    wired->knows_sender = true;
    if (wired->rc_responder) {
      wired->rc_responder->enable_selective();
    }
  }
  uint64_t token = 0;
  while (!is_at_stream && token == 0) {
    if (getrandom(&token, sizeof token, 0) != sizeof token && errno != EINTR) {
      return errno;
    }
  }
  mtu_shift_ = mtu_shift(attributes_.path_mtu);
  send_.peer_counts.reset();
  inboxes_->seal.begin(token);
  wired_ = std::move(wired);
  is_wired_.store(true, std::memory_order_release);
  try {
    if (!is_at_stream) {
      greet(inboxes_->seal.greeting());
      send_requests();
    }
  } catch (const std::bad_alloc&) {
    disconnect_wired();
    throw;
  }
  return 0;
}

void QueuePair::start_requester() {
  if (wired_->rc_requester || wired_->uc_requester) {
    return;
  }
  const auto depth = static_cast<uint32_t>(send_.entries.size());
  const bool is_at_stream = !context_.port().streams.empty();
  wired_->places.assign(depth, 0);
  if (type_ == IBV_QPT_RC) {
    transport::RequesterConfig config;
    config.dest_qp = wired_->remote_qpn;
    config.first_psn = attributes_.sq_psn;
    config.mtu_bytes = wired_->mtu_bytes;
    config.queue_depth = depth;
    config.timeout_code = attributes_.timeout;
    config.retry_count = attributes_.retry_cnt;
    const uint64_t least_ns = context_.port().is_overlay ? kOverlayPatienceNs : kLeastTimeoutNs;
    config.least_timeout_ns = least_ns / (attributes_.retry_cnt + 1ULL);
    config.rnr_retry = attributes_.rnr_retry;
    config.max_rd_atomic = attributes_.max_rd_atomic;
    if (is_at_stream) {
      config.congestion = kStreamCongestion;
    }
    wired_->rc_requester.emplace(config);
  } else {
    wired_->uc_window.emplace(attributes_.sq_psn, is_at_stream ? kStreamUcWindow : transport::UcWindow::Config{});
    wired_->uc_requester.emplace(
        transport::UcRequester::Config{wired_->remote_qpn, attributes_.sq_psn, wired_->mtu_bytes, depth});
  }
}

/// Behind all requests that were sent before: it may say that what follows is sealed.
void QueuePair::greet(const wire::Greeting& greeting) {
  transport::OutPacket packet;
  packet.headers.bth.opcode = wire::kGreeting;
  packet.headers.bth.dest_qp = requesting()->remote_qpn;
  packet.payload = transport::OutPacket::Payload::bytes;
  packet.length = wire::kGreetingBytes;
  wire::emit(greeting, packet.bytes);
  Network::Lease& out = lease(send_.out);
  if (const auto place = out.reserve(kMostPacketBytes); !place.empty()) {
    build(out, place, packet, counts_.first());
  } else {
    counts_.note(kSharedXmitDiscards);  // costs speed, never correctness
  }
}

void QueuePair::greet_again(uint64_t now_ns) {
  const bool is_stranger = inboxes_->seal.peer_token() == 0;
  if (now_ns < requesting()->next_greeting_ns || (is_stranger && requesting()->greetings >= kMaxGreetingsToStrangers)) {
    return;
  }
  requesting()->next_greeting_ns =
      now_ns + (kFirstGreetingPauseNs << (2 * std::min(requesting()->greetings++, kMostPauses)));
  greet(inboxes_->seal.greeting());
}

bool QueuePair::submit_wired(SendEntry& entry, const SendRequest& request) {
  const bool is_atomic = request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  if (request.length > kMaxMessageBytes) {
    return fail_overlong(entry, request.length);
  }
  if (is_atomic && request.length != sizeof(uint64_t)) {
    return fail(entry, IBV_WC_LOC_LEN_ERR);
  }
  Pieces pieces;
  const bool is_answered = is_atomic || request.opcode == IBV_WR_RDMA_READ;
  const uint32_t access = is_answered ? static_cast<uint32_t>(IBV_ACCESS_LOCAL_WRITE) : 0U;
  if (!translate({request.pieces, request.pieces_count}, request.is_inline, access, pieces)) {
    return fail(entry, IBV_WC_LOC_PROT_ERR);
  }
  if (!requesting()->can_submit()) {
    return false;
  }
  const transport::Operation operation = operation_of(request);
  entry.operation = requesting()->submitted++;
  requesting()->places[entry.operation & (static_cast<uint32_t>(requesting()->places.size()) - 1)] =
      next_.load(std::memory_order_relaxed);
  if (requesting()->rc_requester) {
    requesting()->rc_requester->submit(operation);
  } else {
    requesting()->uc_requester->submit(operation);
  }
  if (operation.kind == transport::Operation::send) {
    counts_.first().add(kLaneMessages, 1);
  }
  entry.phase = SendPhase::wired;
  return true;
}

bool QueuePair::fill_payload(const transport::OutPacket& packet, std::byte* target) {
  using Payload = transport::OutPacket::Payload;
  switch (packet.payload) {
    case Payload::none:
      return true;
    case Payload::bytes:
      std::memcpy(target, packet.bytes.data(), packet.length);
      return true;
    case Payload::operation: {
      const SendRequest& request = send_.requests[place_of(packet.operation)];
      Pieces pieces;
      if (!translate({request.pieces, request.pieces_count}, request.is_inline, 0, pieces)) {
        return false;
      }
      pieces.gather(packet.offset, target, packet.length);
      return true;
    }
    case Payload::memory: {
      const std::byte* source = find_local(packet.address, packet.length, packet.key, IBV_ACCESS_REMOTE_READ);
      if (source != nullptr) {
        const base::RemoteAccess by_peer;
        base::copy(target, source, packet.length);
      }
      return source != nullptr;
    }
  }
  return false;
}

void QueuePair::commit(Network::Lease& batch, const link::UdpPath& path, size_t bytes, cluster::CounterLane& lane) {
  batch.commit(path, bytes);
  count_sent(lane, {1, (bytes + wire::kIcrcBytes) / 4});
}

Network::Lease& QueuePair::lease(std::optional<Network::Lease>& batch) {
  return batch ? *batch : batch.emplace(process_.network(), context_.port().netdev_index);
}

bool QueuePair::send_out(std::optional<Network::Lease>& batch) {
  const Network::Sent sent = batch->send();
  if (sent.lost_packets != 0 || sent.waited_us != 0) [[unlikely]] {
    counts_.note(kSharedXmitDiscards, sent.lost_packets);
    counts_.note(kSharedXmitWait, sent.waited_us);
    const uint32_t path_mtu = wired_ != nullptr ? wired_->mtu_bytes : mtu_bytes(context_.port().mtu);
    if (sent.too_long_packets != 0 && context_.port().live->misfit_packets.note(qpn_, path_mtu)) {
      process_.tell_soon();
    }
  }
  if (batch->packet_count() != 0) [[unlikely]] {
    return false;
  }
  batch.reset();
  return true;
}

/// Whoever sends or polls may do it no more: then the service thread tries again.
void QueuePair::note_unsent(std::atomic<bool>& has_unsent, bool is_out) {
  if (is_out) {
    has_unsent.store(false, std::memory_order_relaxed);
  } else if (!has_unsent.exchange(true, std::memory_order_relaxed)) {
    process_.request_service();
  }
}

bool QueuePair::send_requests() {
  const bool is_out = send_out(send_.out);
  const bool has_timers = requesting() != nullptr && state_.load(std::memory_order_relaxed) != IBV_QPS_ERR;
  const uint64_t timers_ns = has_timers ? requesting()->next_deadline_ns() : UINT64_MAX;
  wire_deadline_ns_.store(is_out ? timers_ns : 0, std::memory_order_relaxed);
  note_unsent(has_unsent_sends_, is_out);
  return is_out;
}

/// What found no room, before anything else. After an error it leaves alone, and its sends are flushed meanwhile.
void QueuePair::send_unsent() {
  if (send_requests() && requesting() != nullptr && state_.load(std::memory_order_relaxed) != IBV_QPS_ERR) {
    send_wired();
  }
}

void QueuePair::send_rest(uint64_t deadline_ns) {
  constexpr timespec kPause{0, 100'000};
  const auto has_rest = [this] { return has_unsent_sends_.load() || has_unsent_answers_.load(); };
  while (has_rest() && base::now_ns() < deadline_ns) {
    {
      const base::LockGuard guard(send_lock_);
      if (send_.out) {
        send_requests();
      }
    }
    {
      const base::LockGuard guard(receive_lock_);
      if (receive_.out) {
        send_answers(base::now_ns());
      }
    }
    if (has_rest()) {
      nanosleep(&kPause, nullptr);
    }
  }
}

bool QueuePair::build(Network::Lease& batch, std::span<std::byte> place, transport::OutPacket& packet,
                      cluster::CounterLane& lane) {
  if (packet.headers.bth.opcode != wire::kGreeting) {
    transport::seal(packet.headers, inboxes_->seal.peer_token());
  }
  const size_t header = wire::header_bytes(packet.headers.bth.opcode);
  const size_t pad = wire::pad_bytes(packet.length);
  const size_t bytes = header + packet.length + pad + wire::seal_bytes(packet.headers.bth);
  RINGBOLT_ASSERT(bytes <= place.size());  // the engine keeps to the MTU
  place = place.first(bytes);
  wire::emit(packet.headers, place);
  if (!fill_payload(packet, place.data() + header)) {
    return false;
  }
  std::memset(place.data() + header + packet.length, 0, pad);
  if (packet.headers.bth.is_sealed) {
    wire::emit_seal(packet.headers.seal, place.subspan(header + packet.length + pad));
  }
  if (!is_cut_off() && (type_ == IBV_QPT_RC || context_.port().is_up())) {
    commit(batch, wired_->path, bytes, lane);
  } else {
    counts_.note(kSharedXmitDiscards);
  }
  return true;
}

void QueuePair::send_wired() {
  if (!requesting()->rc_requester && !requesting()->uc_requester) {
    return;
  }
  if (has_unsent_sends_.load(std::memory_order_relaxed) && !send_requests()) [[unlikely]] {
    return;  // first what found no room; meanwhile the engine may think of something better
  }
  const uint64_t now = base::now_ns();
  const bool is_at_stream = !context_.port().streams.empty();
  if (is_at_stream || inboxes_->seal.peer_token() != 0) {
    requesting()->enable_extras();
  }
  if (!is_at_stream && !inboxes_->seal.is_agreed()) {
    greet_again(now);
  }
  if (requesting()->uc_window && !context_.port().is_up()) {
    requesting()->uc_window->let_go();
  }
  Network::Lease& out = lease(send_.out);
  transport::OutPacket packet;
  for (auto place = out.reserve(kMostPacketBytes); !place.empty() && requesting()->next_packet(now, packet);
       place = out.reserve(kMostPacketBytes)) {
    if (!build(out, place, packet, counts_.first())) {
      enter_error(IBV_WC_LOC_PROT_ERR);  // the program took the memory away while it was being sent
      break;
    }
  }
  send_requests();
}

void QueuePair::take_answers() {
  InboundPacket packet;
  AnswerHost host{*this};
  const uint64_t now = base::now_ns();
  bool has_news = false;
  for (int taken = 0; taken < kMaxAnswersAtOnce && inboxes_->answers.pop(packet); ++taken) {
    if (packet.flow.source != requesting()->path.destination || packet.flow.destination != requesting()->path.source) {
      drop(Drop::wrong_source);
      continue;
    }
    count_received(counts_.first(), load_of(packet.view));
    if (packet.view.headers.bth.opcode == wire::kGreeting) {
      const auto greeting = wire::parse_greeting(packet.view.payload);
      if (const auto answer = greeting ? inboxes_->seal.take(*greeting) : std::nullopt) {
        greet(*answer);
        send_requests();
      }
      continue;
    }
    if (requesting()->rc_requester) {
      requesting()->rc_requester->on_packet(now, packet.view, host);
    } else if (requesting()->uc_window) {
      requesting()->uc_window->on_report(packet.view.headers.bth.psn);
    }
    has_news = true;
  }
  if (now >= requesting()->next_deadline_ns()) {
    if (requesting()->rc_requester) {
      requesting()->rc_requester->excuse(process_.network().excused_until_ns(requesting()->path.interface_index, now));
      requesting()->rc_requester->on_timer(now);
    }
    has_news = true;
  }
  if (has_news && requesting()->rc_requester) {
    count_news(requesting()->rc_requester->counters(), requesting()->told.requester, counts_);
  }
  if (has_news && state_.load(std::memory_order_relaxed) != IBV_QPS_ERR) {
    send_wired();
  }
}

ibv_wc_status QueuePair::wired_failure() const {
  const bool has_failed = requesting()->rc_requester && requesting()->rc_requester->failure().has_value();
  return has_failed ? status_of(requesting()->rc_requester->failure()->why) : IBV_WC_SUCCESS;
}

}  // namespace ringbolt::device
