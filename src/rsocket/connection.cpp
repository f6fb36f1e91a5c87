#include "rsocket/connection.h"

#include <array>
#include <cstring>

#include "rsocket/work_id.h"

// Hot path: no allocation and no lock of its own per message.

namespace ringbolt::rsocket {
namespace {

/// A queue that stays in the error state can hold no more completions than this many batches.
constexpr int kMaxBatches = 4096;
constexpr int kBatch = 16;

}  // namespace

Connection::Connection(rdma_cm_id* id, const Settings& settings)
    : settings_(settings),
      endpoint_(id, settings_),
      slots_(settings_.send_depth),
      staging_(settings_.send_bytes),
      ring_(settings_.receive_bytes / 2),
      grants_(static_cast<uint16_t>(settings_.receive_depth)),
      targets_(endpoint_.table().bytes(), settings_.iomap_entries) {}

ConnectionData Connection::local_data() const {
  ConnectionData data;
  data.credits = static_cast<uint16_t>(settings_.receive_depth);
  data.iomap_entries = settings_.iomap_entries;
  data.targets = {endpoint_.table().address(), endpoint_.table().rkey(), kTargets};
  data.ring = {endpoint_.ring().address(), endpoint_.ring().rkey(), ring_.half_bytes()};
  return data;
}

base::Result<void> Connection::join(const ConnectionData& peer) {
  if (peer.targets.length == 0) {
    return base::fail(EPROTO);
  }
  swaps_ = peer.is_big_endian != kIsBigEndian;
  peer_table_ = peer.targets;
  next_peer_entry_ = 1 % peer.targets.length;
  if (peer.has_iomap) {
    peer_iomap_ = {peer.targets.address + uint64_t{peer.targets.length} * kTargetBytes, peer.targets.key,
                   peer.iomap_entries};
  }
  credits_ = SendCredits(peer.credits);
  targets_.begin(peer.ring);
  has_joined_ = true;
  return {};
}

bool Connection::progress() {
  bool any = false;
  std::array<ibv_wc, kBatch> completions;
  for (int batch = 0; batch < kMaxBatches; ++batch) {
    const int count = ibv_poll_cq(endpoint_.cq(), kBatch, completions.data());
    if (count < 0) {
      break_off(EIO);
      return true;
    }
    for (int i = 0; i < count; ++i) {
      const ibv_wc& completion = completions[static_cast<size_t>(i)];
      WorkId::parse(completion.wr_id).kind == WorkKind::receive ? handle_receive(completion) : handle_send(completion);
    }
    if (receives_to_post_ > 0 && error_ == 0) {
      const int failed = endpoint_.post_receives(std::exchange(receives_to_post_, 0U));
      if (failed != 0) {
        break_off(failed);
      }
    }
    any = any || count > 0;
    if (count < kBatch) {
      break;
    }
  }
  grant_if_due();
  return any;
}

void Connection::handle_receive(const ibv_wc& completion) {
  if (completion.status != IBV_WC_SUCCESS) {
    break_off(ECONNRESET);
    return;
  }
  ++receives_to_post_;
  heard_ = true;
  if ((completion.wc_flags & IBV_WC_WITH_IMM) != 0) {
    handle_message(Immediate::parse_wire(completion.imm_data), completion.byte_len);
  }
}

void Connection::handle_message(Immediate message, uint32_t written_bytes) {
  switch (message.op) {
    case Op::data:
      grants_.arrived();
      if (!ring_.arrived(message.value)) {
        break_off(EPROTO);
      }
      break;
    case Op::credits:
      credits_.grant(message.value);
      if (written_bytes == kTargetBytes) {  // with the credits
        targets_.take_written();
      }
      break;
    case Op::iomap_updated:
      grants_.arrived();
      break;
    case Op::control:
      peer_disconnected_ = peer_disconnected_ || message.value == static_cast<uint32_t>(Control::disconnect);
      peer_shut_down_ =
          peer_shut_down_ || peer_disconnected_ || message.value == static_cast<uint32_t>(Control::shutdown);
      break;
  }
}

void Connection::handle_send(const ibv_wc& completion) {
  const WorkId id = WorkId::parse(completion.wr_id);
  if (id.kind == WorkKind::control) {
    slots_.return_control();
  } else {
    slots_.return_data();
    staging_.give_back(id.staged_bytes);
  }
  if (completion.status != IBV_WC_SUCCESS) {
    break_off(ECONNRESET);
  }
}

/// What fails after the peer said goodbye is no error: it may have gone already.
void Connection::break_off(int error) {
  if (error_ == 0 && !peer_disconnected_) {
    error_ = error;
  }
}

void Connection::grant_if_due() {
  if (has_joined_ && error_ == 0 && !peer_disconnected_ && slots_.has_control() &&
      (ring_.has_free_half() || grants_.is_due())) {
    grant();
  }
}

void Connection::grant() {
  ibv_send_wr request{};
  ibv_sge piece{};
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.wr_id = WorkId{WorkKind::control, 0}.emit();
  request.imm_data = Immediate{Op::credits, grants_.take_grant()}.emit_wire();
  if (ring_.has_free_half()) {
    const RemoteBlock half{endpoint_.ring().address() + ring_.offer(), endpoint_.ring().rkey(), ring_.half_bytes()};
    const auto bytes = emit_target(half, swaps_);
    std::byte* place = endpoint_.control_place(control_number_++);
    std::memcpy(place, bytes.data(), bytes.size());
    piece = {reinterpret_cast<uint64_t>(place), static_cast<uint32_t>(bytes.size()), endpoint_.staging().lkey()};
    request.sg_list = &piece;
    request.num_sge = 1;
    request.send_flags = flags_for(bytes.size() <= settings_.inline_bytes);
    request.wr.rdma.remote_addr = peer_table_.address + next_peer_entry_ * kTargetBytes;
    request.wr.rdma.rkey = peer_table_.key;
    next_peer_entry_ = (next_peer_entry_ + 1) % peer_table_.length;
  }
  slots_.take_control();
  post(request);
}

void Connection::send_control(Control what) {
  ibv_send_wr request{};
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  if (what == Control::keepalive) {
    request.opcode = IBV_WR_RDMA_WRITE;  // of no bytes: it takes no receive, and fails if nobody is there
  }
  request.wr_id = WorkId{WorkKind::control, 0}.emit();
  request.imm_data = Immediate{Op::control, static_cast<uint32_t>(what)}.emit_wire();
  slots_.take_control();
  post(request);
}

size_t Connection::receive(IoCursor& to, bool peek, base::Mutex& lock) {
  size_t done = 0;
  while (to.left() > 0 && ring_.readable() > (peek ? done : 0)) {
    const auto skip = static_cast<uint32_t>(peek ? done : 0);
    const auto length = static_cast<uint32_t>(std::min<size_t>(to.left(), ring_.contiguous(skip)));
    const std::byte* source = endpoint_.ring().data() + ring_.offset(skip);
    // Nobody else takes from the ring, and the peer does not write here before we offer it anew.
    {
      const base::Unlocked unlocked(lock);
      to.scatter(source, length);
    }
    if (!peek) {
      ring_.consume(length);
      grant_if_due();
    }
    done += length;
  }
  return done;
}

void Connection::post(ibv_send_wr& request) {
  ibv_send_wr* bad = nullptr;
  const int error = error_ != 0 ? error_ : ibv_post_send(endpoint_.qp(), &request, &bad);
  if (error == 0) {
    return;
  }
  // There will be no completion to give these back.
  ibv_wc lost{};
  lost.wr_id = request.wr_id;
  lost.status = IBV_WC_SUCCESS;
  handle_send(lost);
  break_off(error);
}

}  // namespace ringbolt::rsocket
