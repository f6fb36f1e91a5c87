#include "rsocket/connection.h"

#include <array>
#include <cstring>

#include "rsocket/work_id.h"

// Hot path: no allocation and no lock of its own per message.

namespace ringbolt::rsocket {
namespace {

/// A queue that stays in the error state can hold no more completions than this many batches.
// Of 16 each: 65536 completions bound one call.
constexpr int kMaxBatches = 4096;
constexpr int kBatch = 16;

}  // namespace

Connection::Connection(rdma_cm_id* id, const Settings& settings)
    : settings_(settings),
      endpoint_(id, settings_),
      out_(settings_, TargetTable(endpoint_.table().bytes(), settings_.iomap_entries)),
      in_({endpoint_.ring().address(), endpoint_.ring().rkey(), settings_.receive_bytes},
          static_cast<uint16_t>(settings_.receive_depth)) {}

ConnectionData Connection::local_data() const {
  ConnectionData data;
  data.credits = static_cast<uint16_t>(settings_.receive_depth);
  data.iomap_entries = settings_.iomap_entries;
  data.targets = {endpoint_.table().address(), endpoint_.table().rkey(), kTargets};
  data.ring = in_.first_half();
  return data;
}

base::Result<void> Connection::join(const ConnectionData& peer) {
  if (peer.targets.length == 0) {
    return base::fail(EPROTO);
  }
  peer_tables_ = PeerTables(peer);
  out_.open(peer);
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
      // The peer wrote only where its key let it; what it says is checked all the same, since programs are told of as
      // many bytes.
      if (!in_.take_data(message.value)) {
        break_off(EPROTO);
      }
      break;
    case Op::credits:
      // A grant that wrote something else than a target counts as one without.
      out_.take_grant(message.value, written_bytes == kTargetBytes);
      break;
    case Op::iomap_updated:
      in_.take_other();
      break;
    case Op::control:
      peer_disconnected_ = peer_disconnected_ || message.value == static_cast<uint32_t>(Control::disconnect);
      peer_shut_down_ =
          peer_shut_down_ || peer_disconnected_ || message.value == static_cast<uint32_t>(Control::shutdown);
      break;
  }
}

void Connection::handle_send(const ibv_wc& completion) {
  out_.give_back(WorkId::parse(completion.wr_id));
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
  if (!is_usable() || !out_.has_control() || !in_.is_grant_due()) {
    return;
  }
  const ReceiveWindow::Grant due = in_.take_grant();
  ibv_send_wr request{};
  ibv_sge piece{};
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.wr_id = WorkId{WorkKind::control, 0}.emit();
  request.imm_data = Immediate{Op::credits, due.limit}.emit_wire();
  if (due.half) {
    const auto bytes = emit_target(*due.half, peer_tables_.is_swapped());
    // Free again: of the SendSlots::kControl messages that can be under way this is the oldest's.
    std::byte* place = endpoint_.control_place(control_number_++);
    std::memcpy(place, bytes.data(), bytes.size());
    piece = {reinterpret_cast<uint64_t>(place), static_cast<uint32_t>(bytes.size()), endpoint_.staging().lkey()};
    const PeerTables::Place entry = peer_tables_.take_target();
    request.sg_list = &piece;
    request.num_sge = 1;
    request.send_flags = out_.is_inline(piece.length) ? unsigned{IBV_SEND_INLINE} : 0U;
    request.wr.rdma.remote_addr = entry.address;
    request.wr.rdma.rkey = entry.key;
  }
  out_.take_control();
  post(request);
}

void Connection::send_control(Control what) {
  ibv_send_wr request{};
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  // No piece: neither address nor key of the peer is needed.
  if (what == Control::keepalive) {
    request.opcode = IBV_WR_RDMA_WRITE;  // of no bytes: it takes no receive, and fails if nobody is there
  }
  request.wr_id = WorkId{WorkKind::control, 0}.emit();
  request.imm_data = Immediate{Op::control, static_cast<uint32_t>(what)}.emit_wire();
  out_.take_control();
  post(request);
}

size_t Connection::receive(IoCursor& to, bool peek, base::Mutex& lock) {
  size_t done = 0;
  while (to.left() > 0 && in_.readable() > (peek ? done : 0)) {
    const auto [offset, length] = in_.next(static_cast<uint32_t>(peek ? done : 0), to.left());
    const std::byte* source = endpoint_.ring().data() + offset;
    // Nobody else takes from the ring, and the peer does not write here before we offer it anew.
    {
      const base::Unlocked unlocked(lock);
      to.scatter(source, length);
    }
    if (!peek) {
      in_.consume(length);
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
  // So that it gives its slot back, and does not count as the failure itself.
  lost.status = IBV_WC_SUCCESS;
  handle_send(lost);
  break_off(error);
}

}  // namespace ringbolt::rsocket
