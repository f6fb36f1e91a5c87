#include "rsocket/datagram_link.h"

#include <fcntl.h>

#include <array>

#include "rsocket/work_id.h"

namespace ringbolt::rsocket {
namespace {

constexpr const char* kName = "datagram rsocket";
// In front of each datagram (InfiniBand Architecture Specification 1.4, 11.4.1.2).
constexpr uint32_t kGrhBytes = sizeof(ibv_grh);
constexpr uint32_t kReceiveBytes = DatagramLink::kSlotBytes + kGrhBytes;
// Below that a burst of a few datagrams would be lost.
constexpr uint32_t kMinSlots = 16;

[[noreturn]] void refuse(const char* call) { throw base::Error(errno == 0 ? EIO : errno, call, kName); }

uint32_t slots_of(uint32_t buffer_bytes, uint32_t depth) {
  return std::clamp(buffer_bytes / DatagramLink::kSlotBytes, kMinSlots, std::max(depth, kMinSlots));
}

CmLink link_at(Address local) {
  auto link = CmLink::create(RDMA_PS_UDP);
  if (!link) {
    throw base::Error(link.error().value, "rdma_create_id", kName);
  }
  if (rdma_bind_addr(link->id(), local.get()) != 0) {
    refuse("rdma_bind_addr");
  }
  if (link->id()->verbs == nullptr) {
    throw base::Error(ENODEV, "rdma_bind_addr", kName);
  }
  return std::move(*link);
}

}  // namespace

DatagramLink::DatagramLink(const Address& local, const Settings& settings)
    : link_(link_at(local)),
      header_{local},
      receives_(slots_of(settings.receive_bytes, settings.receive_depth)),
      sends_(slots_of(settings.send_bytes, settings.send_depth)),
      channel_(ibv_create_comp_channel(link_.id()->verbs)) {
  if (channel_ == nullptr || ::fcntl(channel_->fd, F_SETFL, O_NONBLOCK) != 0) {
    refuse("ibv_create_comp_channel");
  }
  cq_.reset(ibv_create_cq(link_.id()->verbs, static_cast<int>(receives_ + sends_), nullptr, channel_.get(), 0));
  if (cq_ == nullptr) {
    refuse("ibv_create_cq");
  }
  make_queue_pair();
  try {
    memory_ = {pd(), size_t{receives_} * kReceiveBytes + size_t{sends_} * kSlotBytes, IBV_ACCESS_LOCAL_WRITE, kName};
    for (uint32_t slot = 0; slot < sends_; ++slot) {
      free_slots_.push_back(slot);
    }
    for (uint32_t slot = 0; slot < receives_; ++slot) {
      const int error = post_receive(slot);
      if (error != 0) {
        throw base::Error(error, "ibv_post_recv", kName);
      }
    }
  } catch (...) {
    rdma_destroy_qp(link_.id());
    throw;
  }
}

DatagramLink::~DatagramLink() {
  rdma_destroy_qp(link_.id());
  take_events();
}

void DatagramLink::make_queue_pair() {
  ibv_qp_init_attr wanted{};
  wanted.send_cq = cq_.get();
  wanted.recv_cq = cq_.get();
  wanted.qp_type = IBV_QPT_UD;
  wanted.sq_sig_all = 1;
  wanted.cap.max_send_wr = sends_;
  wanted.cap.max_recv_wr = receives_;
  wanted.cap.max_send_sge = 1;
  wanted.cap.max_recv_sge = 1;
  if (rdma_create_qp(link_.id(), nullptr, &wanted) != 0) {
    refuse("rdma_create_qp");
  }
}

std::span<std::byte> DatagramLink::receive_slot(uint32_t slot) const {
  return memory_.bytes().subspan(size_t{slot} * kReceiveBytes, kReceiveBytes);
}

std::span<std::byte> DatagramLink::send_slot(uint32_t slot) const {
  return memory_.bytes().subspan(size_t{receives_} * kReceiveBytes + size_t{slot} * kSlotBytes, kSlotBytes);
}

int DatagramLink::post_receive(uint32_t slot) {
  ibv_sge piece{reinterpret_cast<uint64_t>(receive_slot(slot).data()), kReceiveBytes, memory_.lkey()};
  ibv_recv_wr request{};
  request.wr_id = WorkId{WorkKind::receive, slot}.emit();
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(link_.id()->qp, &request, &bad);
}

int DatagramLink::send(ibv_ah* handle, uint32_t qpn, IoCursor from) {
  const uint32_t slot = free_slots_.back();
  const std::span<std::byte> place = send_slot(slot);
  header_.emit(place);
  const size_t length = from.left();
  from.gather(place.data() + header_.bytes(), length);
  ibv_sge piece{reinterpret_cast<uint64_t>(place.data()), static_cast<uint32_t>(header_.bytes() + length),
                memory_.lkey()};
  ibv_send_wr request{};
  request.opcode = IBV_WR_SEND;
  request.wr_id = WorkId{WorkKind::data, slot}.emit();
  request.sg_list = &piece;
  request.num_sge = 1;
  request.wr.ud.ah = handle;
  request.wr.ud.remote_qpn = qpn;
  request.wr.ud.remote_qkey = RDMA_UDP_QKEY;
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(link_.id()->qp, &request, &bad);
  if (error == 0) {
    free_slots_.pop_back();
  }
  return error;
}

bool DatagramLink::progress(const Deliver& deliver) {
  constexpr int kAtOnce = 16;
  bool any = false;
  std::array<ibv_wc, kAtOnce> completions;
  int count = 0;
  do {
    count = ibv_poll_cq(cq_.get(), kAtOnce, completions.data());
    for (int i = 0; i < count; ++i) {
      const ibv_wc& completion = completions[static_cast<size_t>(i)];
      const WorkId id = WorkId::parse(completion.wr_id);
      any = true;
      if (id.kind == WorkKind::data) {
        // Of sends the WorkId has the slot in that place. Failed or not, the slot is free.
        free_slots_.push_back(id.staged_bytes);
        continue;
      }
      if (completion.status == IBV_WC_SUCCESS && completion.byte_len >= kGrhBytes) {
        const auto bytes = receive_slot(id.staged_bytes).subspan(kGrhBytes, completion.byte_len - kGrhBytes);
        if (auto header = DatagramHeader::parse(bytes)) {
          header->source.complete_scope(header_.source);
          deliver(header->source, bytes.subspan(header->bytes()));
        }
      }
      (void)post_receive(id.staged_bytes);  // a queue pair in error takes no more, and brings no more
    }
  } while (count == kAtOnce);
  return any;
}

bool DatagramLink::arm() {
  if (is_armed_) {
    return false;
  }
  is_armed_ = ibv_req_notify_cq(cq_.get(), 0) == 0;
  return is_armed_;
}

void DatagramLink::take_events() {
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  while (ibv_get_cq_event(channel_.get(), &cq, &context) == 0) {
    ibv_ack_cq_events(cq, 1);
    is_armed_ = false;
  }
}

}  // namespace ringbolt::rsocket
