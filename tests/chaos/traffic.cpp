#include "traffic.h"

#include <cstring>

#include "pattern.h"

namespace ringbolt::chaos {
namespace {

constexpr std::uint64_t kReceiveMark = 1U << 31U;

/// Stands before the pattern of a SEND, so that the receiver knows what it should see.
struct Header {
  std::uint64_t sequence = 0;
  std::uint32_t round = 0;
  std::uint32_t side = 0;
  std::uint32_t length = 0;
  std::uint32_t zero = 0;
};

}  // namespace

Traffic::Traffic(Endpoint& endpoint, const PeerInfo& peer)
    : endpoint_(endpoint), peer_(peer), random_(endpoint.settings().seed * 2 + endpoint.settings().side) {
  for (std::size_t index = 0; index < kWindow; ++index) post_receive(index);
}

void Traffic::post() {
  if (is_draining_ || first_error_ != IBV_WC_SUCCESS) return;
  for (std::size_t index = 0; index < kWindow; ++index) {
    if (slots_[index].step == Step::free) post_slot(index);
  }
}

int Traffic::poll() {
  std::array<ibv_wc, kWindow> batch{};
  const int count = ibv_poll_cq(endpoint_.cq(), static_cast<int>(batch.size()), batch.data());
  if (count < 0) die("ibv_poll_cq failed");
  for (int at = 0; at < count; ++at) {
    const ibv_wc& completion = batch[static_cast<std::size_t>(at)];
    if (completion.status != IBV_WC_SUCCESS) {
      on_error(completion);
    } else if ((completion.wr_id & kReceiveMark) != 0) {
      on_receive(completion);
    } else {
      on_sent(completion);
    }
  }
  return count;
}

void Traffic::post_receive(std::size_t index) {
  const auto bytes = endpoint_.slot(Area::receive, index);
  ibv_sge piece{reinterpret_cast<std::uintptr_t>(bytes.data()), static_cast<std::uint32_t>(bytes.size()), endpoint_.lkey()};
  ibv_recv_wr request{};
  request.wr_id = kReceiveMark | index;
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_recv_wr* refused = nullptr;
  if (const int error = ibv_post_recv(endpoint_.qp(), &request, &refused); error != 0)
    die("ibv_post_recv failed with errno " + std::to_string(error));
}

void Traffic::post_slot(std::size_t index) {
  const RoundSettings& settings = endpoint_.settings();
  const bool is_datagram = settings.type == IBV_QPT_UD;
  const std::uint64_t choice = random_() % 100;
  const std::size_t limit = is_datagram ? kDatagramBytes : (random_() % 4 == 0 ? kSlotBytes : 512U);
  const auto length = static_cast<std::uint32_t>(sizeof(Header) + random_() % (limit - sizeof(Header) + 1));
  Slot& slot = slots_[index];
  slot.length = length;
  if (is_datagram || choice < 50) {
    slot.step = Step::send;
    slot.origin = {settings.round, settings.side, next_send_++};
    const auto bytes = endpoint_.slot(Area::send, index).first(length);
    const Header header{slot.origin.sequence, settings.round, settings.side, length, 0};
    std::memcpy(bytes.data(), &header, sizeof header);
    fill_pattern(bytes.subspan(sizeof header), slot.origin);
    post_operation(index, IBV_WR_SEND, Area::send, Area::count, length);
  } else if (settings.type == IBV_QPT_UC || choice < 75) {
    slot.step = Step::write;
    slot.origin = {settings.round, settings.side, (next_write_++ << 32U) | index};
    fill_pattern(endpoint_.slot(Area::send, index).first(length), slot.origin);
    post_operation(index, IBV_WR_RDMA_WRITE, Area::send, Area::target, length);
  } else if (choice < 90) {
    slot.step = Step::read_source;
    slot.origin = {settings.round, side_of_peer(), 0};
    post_operation(index, IBV_WR_RDMA_READ, Area::fetched, Area::source, length);
  } else {
    slot.step = Step::fetch_add;
    slot.length = sizeof(std::uint64_t);
    post_operation(index, IBV_WR_ATOMIC_FETCH_AND_ADD, Area::fetched, Area::counter, slot.length);
  }
}

void Traffic::post_operation(std::size_t index, ibv_wr_opcode opcode, Area local, Area remote, std::uint32_t length) {
  ibv_sge piece{reinterpret_cast<std::uintptr_t>(endpoint_.slot(local, index).data()), length, endpoint_.lkey()};
  ibv_send_wr request{};
  request.wr_id = index;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = opcode;
  request.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED;
  const bool is_shared_by_slots = remote == Area::source || remote == Area::counter;
  const std::uint64_t address = peer_.address + Endpoint::remote_offset(remote, is_shared_by_slots ? 0 : index);
  if (endpoint_.settings().type == IBV_QPT_UD) {
    request.wr.ud.ah = endpoint_.address_handle();
    request.wr.ud.remote_qpn = peer_.qp_num;
    request.wr.ud.remote_qkey = kQkey;
  } else if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    request.wr.atomic.remote_addr = address;
    request.wr.atomic.rkey = peer_.rkey;
    request.wr.atomic.compare_add = 1;
  } else if (opcode != IBV_WR_SEND) {
    request.wr.rdma.remote_addr = address;
    request.wr.rdma.rkey = peer_.rkey;
  }
  ibv_send_wr* refused = nullptr;
  if (const int error = ibv_post_send(endpoint_.qp(), &request, &refused); error != 0)
    die("ibv_post_send failed with errno " + std::to_string(error));
  ++in_flight_;
  ++counts_.posted;
}

void Traffic::on_receive(const ibv_wc& completion) {
  const auto index = static_cast<std::size_t>(completion.wr_id & ~kReceiveMark);
  auto bytes = endpoint_.slot(Area::receive, index).first(completion.byte_len);
  if (endpoint_.settings().type == IBV_QPT_UD) bytes = bytes.subspan(kGrhBytes);
  Header header;
  if (bytes.size() < sizeof header) die("a message of " + std::to_string(bytes.size()) + " bytes arrived");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.round != endpoint_.settings().round || header.side != side_of_peer() || header.length != bytes.size())
    die("a message of round " + std::to_string(header.round) + ", length " + std::to_string(header.length) +
        " arrived with " + std::to_string(bytes.size()) + " bytes in round " + std::to_string(endpoint_.settings().round));
  const bool is_in_order = endpoint_.settings().type == IBV_QPT_RC ? header.sequence == next_receive_
                                                                   : header.sequence >= next_receive_;
  if (!is_in_order)
    die("message " + std::to_string(header.sequence) + " arrived, expected " + std::to_string(next_receive_));
  next_receive_ = header.sequence + 1;
  verify(bytes.subspan(sizeof header), {header.round, header.side, header.sequence}, "SEND");
  ++counts_.received;
  post_receive(index);
}

void Traffic::on_sent(const ibv_wc& completion) {
  const auto index = static_cast<std::size_t>(completion.wr_id);
  Slot& slot = slots_[index];
  --in_flight_;
  ++counts_.completed;
  const auto fetched = endpoint_.slot(Area::fetched, index).first(slot.length);
  if (slot.step == Step::write && endpoint_.settings().type == IBV_QPT_RC) {
    slot.step = Step::read_back;
    std::memset(fetched.data(), 0, fetched.size());
    if (first_error_ == IBV_WC_SUCCESS) {
      post_operation(index, IBV_WR_RDMA_READ, Area::fetched, Area::target, slot.length);
      return;
    }
  } else if (slot.step == Step::read_back) {
    verify(fetched, slot.origin, "WRITE read back");
  } else if (slot.step == Step::read_source) {
    verify(fetched, slot.origin, "READ");
  } else if (slot.step == Step::fetch_add) {
    std::uint64_t count = 0;
    std::memcpy(&count, fetched.data(), sizeof count);
    if (count != next_count_) die("fetch-and-add gave " + std::to_string(count) + ", expected " + std::to_string(next_count_));
    ++next_count_;
    ++counts_.verified;
  }
  slot.step = Step::free;
}

void Traffic::on_error(const ibv_wc& completion) {
  if (first_error_ == IBV_WC_SUCCESS) first_error_ = completion.status;
  if (completion.status == IBV_WC_WR_FLUSH_ERR) ++counts_.flushed;
  if ((completion.wr_id & kReceiveMark) != 0) return;
  --in_flight_;
  if (first_send_error_ == IBV_WC_SUCCESS) first_send_error_ = completion.status;
}

void Traffic::verify(std::span<const std::byte> bytes, const Origin& origin, const char* what) {
  if (const auto wrong = first_wrong(bytes, origin))
    die(std::string(what) + " of " + std::to_string(bytes.size()) + " bytes is wrong from byte " + std::to_string(*wrong));
  ++counts_.verified;
}

}  // namespace ringbolt::chaos
