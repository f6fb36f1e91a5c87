// Hot path: see rail.h.
#include "circuit/rail.h"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "base/error.h"
#include "bootstrap/authenticator.h"
#include "verbs/codes.h"
#include "verbs/expected_refusals.h"

namespace ringbolt::circuit {
namespace {

constexpr uint32_t kPsnMask = 0xffffff;
/// A time-out of 67 ms and seven tries: half a second until a cable without a port that says so is given up.
// 4.096 us times 2^14 (ibv_modify_qp(3), IBV_QP_TIMEOUT); the tries are those of verbs::Path.
constexpr uint8_t kTimeout = 14;
/// Shorter frames go along with the news of them; longer ones are read where they lie.
constexpr uint32_t kLeastInPlaceBytes = 2048;
// What a device that counts frames takes for one (bringup::Capabilities::counts_frames).
constexpr uint32_t kFrameBytes = 4096;
constexpr uint32_t frames_of(uint32_t length_bytes) { return (length_bytes + kFrameBytes - 1) / kFrameBytes; }

std::optional<verbs::CompletionChannel> channel_of(const Device& device, bool is_wanted) {
  if (!is_wanted) {
    return std::nullopt;
  }
  try {
    // A device without channels is nothing to explain to the program's user.
    const verbs::ExpectedRefusals expected(device.context.calls());
    return std::optional<verbs::CompletionChannel>(std::in_place, device.context);
  } catch (const base::Error&) {
    return std::nullopt;  // then it is polled
  }
}

}  // namespace

Rail::Rail(const Devices& devices, const RailPlan& plan)
    : device_(devices.device_of(plan.port)),
      card_(devices.cards()[plan.port]),
      plan_(plan),
      channel_(channel_of(device_, plan.relays)),
      // Room for every request that can be posted: it never overflows.
      cq_(device_.context, static_cast<int>(plan.n_receives + plan.send_depth), channel_ ? &*channel_ : nullptr),
      // Random, so that packets of an earlier queue pair with the same number do not fit.
      psn_(static_cast<uint32_t>(bootstrap::random_number()) & kPsnMask) {
  receives_.emplace(device_.pd, size_t{plan.n_receives} * plan.receive_bytes, verbs::Contents::anything);
  receive_region_.emplace(device_.pd, receives_->bytes());
  if (!plan.sends.empty()) {
    send_region_.emplace(device_.pd, plan.sends);
  }
  verbs::QueuePairPlan wanted;
  wanted.type = plan.type;
  wanted.send_cq = &cq_;
  wanted.receive_cq = &cq_;
  const uint32_t send_unit = plan.counts_frames ? frames_of(plan.peer_receive_bytes) : 1;
  wanted.send_depth = plan.send_depth * send_unit;
  wanted.receive_depth = plan.n_receives * (plan.counts_frames ? frames_of(plan.receive_bytes) : 1);
  unconnected_.emplace(device_.pd, wanted);
  // A device may grant more than was asked, or less.
  depth_ = std::min(plan.send_depth, unconnected_->send_depth() / send_unit);
  if (unconnected_->receive_depth() < wanted.receive_depth || depth_ < 2 * kRequestsPerSignal) {
    throw base::Error(
        ENOMEM, "ibv_create_qp", unconnected_->name(),
        fmt::format("the device grants {} sends and {} receives where {} and {} are needed", unconnected_->send_depth(),
                    unconnected_->receive_depth(), wanted.send_depth, wanted.receive_depth));
  }
  told_.resize(depth_);
  // So many bytes take as many frames as the other end's receive: one more than all but the last frame hold.
  least_bytes_ = plan.counts_frames ? (send_unit - 1) * kFrameBytes + 1 : 0;
}

QueuePairAddress Rail::address() const {
  QueuePairAddress address;
  // Asked anew: the card is from when the port was looked at last.
  const auto gid = device_.context.query_gid(card_.port, plan_.gid_index);
  if (!gid) {
    throw base::Error(gid.error().value, "ibv_query_gid", device_.context.device());
  }
  address.gid = bringup::gid_of(*gid);
  address.lid = card_.lid;
  address.qp_number = qp_ ? qp_->number() : unconnected_->number();
  address.psn = psn_;
  address.mtu_bytes = card_.mtu_bytes;
  address.reads_in_place = reads_in_place_;
  address.is_uc = plan_.type == IBV_QPT_UC;
  address.counts_frames = plan_.counts_frames;
  return address;
}

void Rail::connect(const QueuePairAddress& peer) {
  verbs::Path path;
  path.port = card_.port;
  path.gid_index = plan_.gid_index;
  path.mtu = verbs::mtu_code(std::min(card_.mtu_bytes, peer.mtu_bytes));
  path.hop_limit = 64;  // a switch may route
  path.psn = psn_;
  path.timeout = kTimeout;
  path.remote_access = plan_.takes_writes ? static_cast<unsigned>(IBV_ACCESS_REMOTE_WRITE) : 0U;
  unconnected_->to_init(path);
  // Before RTR: from then on the peer may send (ibv_modify_qp(3)).
  for (uint32_t slot = 0; slot < plan_.n_receives; ++slot) {
    if (!post_receive(slot)) {
      throw base::Error(EIO, "ibv_post_recv", name(), failure_);
    }
  }
  unconnected_->to_rtr({peer.qp_number, peer.psn, peer.lid, bringup::ibv_gid_of(peer.gid)});
  qp_.emplace(std::move(*unconnected_).to_rts());
  unconnected_.reset();
  name_ = qp_->name();
  // Not on UC, where what is sent again would be read where it may be written anew.
  reads_in_place_ = plan_.may_read_in_place && plan_.type == IBV_QPT_RC && qp_->receive_in_place();
  peer_reads_in_place_ = plan_.type == IBV_QPT_RC && peer.reads_in_place;
}

// One of the two is there at any time, but within connect().
std::string Rail::name() const { return name_.empty() ? unconnected_->name() : name_; }

bool Rail::post_receive(uint32_t slot) {
  if (has_failed()) [[unlikely]] {
    return false;
  }
  ibv_sge piece = receive_region_->piece(size_t{slot} * plan_.receive_bytes, plan_.receive_bytes);
  ibv_recv_wr request{};
  request.wr_id = kIsReceive | slot;
  request.sg_list = &piece;
  request.num_sge = 1;
  // Receives may be posted from INIT on.
  const int error = qp_ ? qp_->post_receive(request) : unconnected_->post_receive(request);
  return error == 0 || fail("ibv_post_recv", error);
}

bool Rail::post_freed() {
  if (has_failed()) [[unlikely]] {
    return false;
  }
  for (uint32_t i = 0; i < n_freed_; ++i) {
    receive_pieces_[i] = receive_region_->piece(size_t{freed_[i]} * plan_.receive_bytes, plan_.receive_bytes);
    ibv_recv_wr& request = receive_requests_[i];
    request.wr_id = kIsReceive | freed_[i];
    request.sg_list = &receive_pieces_[i];
    request.num_sge = 1;
    request.next = i + 1 < n_freed_ ? &receive_requests_[i + 1] : nullptr;
  }
  n_freed_ = 0;
  const int error = qp_->post_receive(receive_requests_[0]);
  return error == 0 || fail("ibv_post_recv", error);
}

void Rail::prepare(const std::byte* frame, uint32_t length_bytes, bool is_told, uint32_t cookie) {
  // By where it lies: the caller says only the address. A relay's frames lie in the other rail's receives (extra_).
  const auto is_of = [&](const std::optional<verbs::MemoryRegion>& region) {
    return region && frame >= region->bytes().data() && frame < region->bytes().data() + region->bytes().size();
  };
  const verbs::MemoryRegion& region = is_of(send_region_) ? *send_region_ : is_of(extra_) ? *extra_ : *receive_region_;
  // Frames of 4 KiB are filled up with whatever lies behind in the same memory, which must go on for as long.
  send_piece_ = region.piece(static_cast<size_t>(frame - region.bytes().data()), std::max(length_bytes, least_bytes_));
  if (is_told) {
    told_[(first_told_ + n_told_++) % told_.size()] = {n_posted_, cookie};
  }
  ++n_unsignalled_;
  // A completion that never comes is made up for by the next one: more are asked for while few come.
  const bool is_scarce = plan_.type == IBV_QPT_UC && n_posted_ - n_completed_ > depth_ / 2;
  const bool is_signalled = is_told || is_scarce || n_unsignalled_ == kRequestsPerSignal;
  ibv_send_wr& request = send_request_;
  request.wr_id = n_posted_++;
  request.sg_list = &send_piece_;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = is_signalled ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0U;
  if (peer_reads_in_place_ && !is_told && length_bytes >= kLeastInPlaceBytes) {
    request.send_flags |= base::kStaysInPlace;  // until the receiver says that it has taken the frame
  }
  if (is_signalled) {
    n_unsignalled_ = 0;
  }
}

bool Rail::send(const std::byte* frame, uint32_t length_bytes, bool is_told, uint32_t cookie) {
  if (has_failed() || (is_told && n_told_ == told_.size())) [[unlikely]] {
    return fail("sends do not complete");
  }
  prepare(frame, length_bytes, is_told, cookie);
  const int error = qp_->post_send(send_request_);
  return error == 0 || fail("ibv_post_send", error);
}

bool Rail::write_and_send(const ibv_sge& piece, uint64_t address, uint32_t key, const std::byte* frame,
                          uint32_t length_bytes, uint32_t cookie) {
  if (has_failed()) [[unlikely]] {
    return false;
  }
  ++n_posted_;
  ++n_unsignalled_;
  write_piece_ = piece;
  ibv_send_wr& request = write_request_;
  request.sg_list = &write_piece_;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = 0;  // the frame's completion is this one's, too: RC completes in order
  request.wr.rdma.remote_addr = address;
  request.wr.rdma.rkey = key;
  prepare(frame, length_bytes, true, cookie);
  request.next = &send_request_;
  const int error = qp_->post_send(request);
  return error == 0 || fail("ibv_post_send", error);
}

Rail::Received Rail::received(const ibv_wc& completion) const {
  Received one;
  one.slot = static_cast<uint32_t>(completion.wr_id);
  // A library that may be anybody's: nothing is read behind the receive.
  one.length_bytes = std::min(completion.byte_len, plan_.receive_bytes);
  const std::span<const std::byte> memory = slot(one.slot);
  const bool is_in_place = reads_in_place_ && (completion.wc_flags & base::kReceivedInPlace) != 0;
  one.head = memory.first(is_in_place ? std::min(one.length_bytes, base::kHeadBytes) : one.length_bytes);
  one.frame = is_in_place ? base::place_in(completion) : memory.data();
  return one;
}

bool Rail::fail(std::string why) {
  if (failure_.empty()) {
    failure_ = std::move(why);
    // In ERR packets that come are dropped (InfiniBand Architecture Specification, 10.3.1.7).
    if (plan_.type == IBV_QPT_RC && qp_ && qp_->to_error() != 0) {
      qp_.reset();  // a device that refuses even that: what can still be done is to destroy it
    }
  }
  return false;
}

/// Some devices with UC alone keep the regions of queue pairs that are destroyed in ERR, which this one may be in.
Rail::~Rail() {
  if (qp_ && plan_.type == IBV_QPT_UC && has_failed()) {
    try {
      unconnected_.emplace(std::move(*qp_).reset());
    } catch (const base::Error&) {
      return;  // then it goes as it is
    }
  }
}

bool Rail::fail(const char* call, int error) {
  return fail(fmt::format("{}: {}: {}", name(), call, base::reason_of(error)));
}

bool Rail::fail_completion(const ibv_wc& completion) {
  const verbs::Calls& calls = device_.context.calls();
  const char* what = calls.wc_status_str != nullptr ? calls.wc_status_str(completion.status) : "error";
  return fail(fmt::format("{}: a {} completed with {} ({})", name(),
                          (completion.wr_id & kIsReceive) != 0 ? "receive" : "send",
                          static_cast<int>(completion.status), what));
}

void Rail::arm() const {
  // Old events would end the sleep at once; each is acknowledged, or the queue could not be destroyed
  // (ibv_ack_cq_events(3)).
  while (channel_ && channel_->take_event()) {
  }
  (void)cq_.arm();
}

}  // namespace ringbolt::circuit
