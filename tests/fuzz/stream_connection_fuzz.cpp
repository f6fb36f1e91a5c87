// A connection of streams on a card whose other end says what it likes: commands of any length, immediates, writes into
// the receive buffer at any time, failures in the middle. The card refuses nothing and checks all that is posted: no
// request leaves memory that was registered under its key or what the peer announced, no receive is posted twice, no
// queue overflows, and all memory that was reserved goes back. The first byte says which role is played, and whether
// each message is looked at before the next one comes: then it is held against the rules.

#include <arpa/inet.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "input.h"
#include "stream/connection.h"
#include "stream_rules.h"

namespace {

using namespace ringbolt;
using namespace ringbolt::stream;

constexpr uint64_t kBudget = 1U << 20U;
constexpr uint32_t kLongest = 16U << 20U;  // more than the budget: both limits are met
constexpr uint32_t kRxLength = 4096;

struct Receive {
  uint64_t slot = 0;
  uint64_t address = 0;
};
struct Send {
  uint64_t id = 0;
  bool is_signaled = false;
  ibv_wc_opcode opcode = IBV_WC_SEND;
};
struct Announcement {
  uint64_t address = 0;
  uint32_t length = 0;
  uint32_t key = 0;
};

/// One card with one queue pair: what was posted, and what is to be polled.
struct Card {
  ibv_device device{};
  ibv_context context{};
  ibv_comp_channel channel{};
  ibv_pd pd{};
  ibv_cq cq{};
  ibv_qp qp{};
  rdma_cm_id id{};
  std::list<ibv_mr> regions;
  uint32_t next_key = 1;
  uint32_t most_sends = 0;
  std::deque<Receive> receives;
  std::array<bool, Endpoint::kReceives> is_posted{};  // of the receives, by slot
  std::deque<Send> sends;
  std::deque<ibv_wc> completions;
  std::vector<Announcement> announced;  // by the peer
  std::vector<ControlMessage> said;     // by the connection
  bool has_failed = false;              // all that is posted comes back flushed
  int refuses_in = -1;                  // posts until one is refused

  bool refuses() { return refuses_in >= 0 && refuses_in-- == 0; }
  bool holds(const ibv_sge& piece) const {
    return std::ranges::any_of(regions, [&](const ibv_mr& one) {
      const auto begin = reinterpret_cast<uintptr_t>(one.addr);
      return one.lkey == piece.lkey && piece.addr >= begin && piece.addr - begin <= one.length &&
             piece.length <= one.length - (piece.addr - begin);
    });
  }
  void finish(uint64_t wr_id, ibv_wc_status status, ibv_wc_opcode opcode, uint32_t bytes, uint32_t immediate) {
    ibv_wc done{};
    done.wr_id = wr_id;
    done.status = status;
    done.opcode = opcode;
    done.byte_len = bytes;
    done.imm_data = htonl(immediate);
    completions.push_back(done);
  }
  /// The oldest receive, with that status. False: none is posted, and the peer has to wait.
  bool receive(ibv_wc_status status, ibv_wc_opcode opcode, uint32_t bytes, uint32_t immediate) {
    if (receives.empty()) {
      return false;
    }
    const uint64_t slot = receives.front().slot;
    receives.pop_front();
    is_posted[slot] = false;
    finish(slot, status, opcode, bytes, immediate);
    return true;
  }
  void execute_one_send() {
    if (!sends.empty()) {
      if (sends.front().is_signaled || has_failed) {
        finish(sends.front().id, has_failed ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS, sends.front().opcode, 0, 0);
      }
      sends.pop_front();
    }
  }
  void flush() {
    has_failed = true;
    while (!sends.empty()) {
      execute_one_send();
    }
    while (receive(IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV, 0, 0)) {
    }
  }
};
Card* card = nullptr;  // of the input that is played: C functions have no other way to it

int post_receive(ibv_qp*, ibv_recv_wr* request, ibv_recv_wr** bad) {
  for (; request != nullptr; request = request->next) {
    if (card->refuses()) {
      *bad = request;
      return ENOMEM;
    }
    RINGBOLT_ASSERT(request->num_sge == 1 && card->holds(*request->sg_list));
    RINGBOLT_ASSERT(request->sg_list->length == kControlBytes && request->wr_id < Endpoint::kReceives);
    RINGBOLT_ASSERT(!std::exchange(card->is_posted[request->wr_id], true));
    card->receives.push_back({request->wr_id, request->sg_list->addr});
  }
  if (card->has_failed) {
    card->flush();
  }
  return 0;
}

void check_target(const ibv_send_wr& request, uint32_t length) {
  RINGBOLT_ASSERT(std::ranges::any_of(card->announced, [&](const Announcement& one) {
    const uint64_t at = request.wr.rdma.remote_addr - one.address;
    return request.wr.rdma.rkey == one.key && at <= one.length && length <= one.length - at;
  }));
}

int post_send(ibv_qp*, ibv_send_wr* request, ibv_send_wr** bad) {
  if (card->refuses()) {
    *bad = request;
    return ENOMEM;
  }
  RINGBOLT_ASSERT(request->next == nullptr && request->num_sge <= 1);
  RINGBOLT_ASSERT(request->num_sge == 0 || card->holds(*request->sg_list));
  const bool is_command = request->opcode == IBV_WR_SEND;
  if (is_command) {
    RINGBOLT_ASSERT(request->sg_list->length == kControlBytes);
    const auto* bytes = reinterpret_cast<const std::byte*>(request->sg_list->addr);
    const auto message = ControlMessage::parse({bytes, kControlBytes});
    RINGBOLT_ASSERT(message);
    card->said.push_back(*message);
  } else if (request->num_sge == 1) {
    check_target(*request, request->sg_list->length);
  }
  card->sends.push_back({request->wr_id, (request->send_flags & unsigned{IBV_SEND_SIGNALED}) != 0,
                         is_command ? IBV_WC_SEND : IBV_WC_RDMA_WRITE});
  RINGBOLT_ASSERT(card->sends.size() <= card->most_sends);
  if (card->has_failed) {
    card->flush();
  }
  return 0;
}

int poll(ibv_cq*, int room, ibv_wc* into) {
  const auto n = std::min<size_t>(static_cast<size_t>(room), card->completions.size());
  std::copy_n(card->completions.begin(), n, into);
  card->completions.erase(card->completions.begin(), card->completions.begin() + static_cast<std::ptrdiff_t>(n));
  return static_cast<int>(n);
}

verbs::Calls verbs_calls() {
  verbs::Calls calls;
  calls.get_device_list = [](int*) -> ibv_device** { return nullptr; };
  calls.modify_qp = [](ibv_qp*, ibv_qp_attr*, int) { return 0; };  // never called: a library must have them
  calls.get_device_name = [](ibv_device*) -> const char* { return card->device.name; };
  calls.alloc_pd = [](ibv_context*) { return &card->pd; };
  calls.dealloc_pd = [](ibv_pd*) { return 0; };
  calls.create_cq = [](ibv_context*, int, void*, ibv_comp_channel*, int) { return &card->cq; };
  calls.destroy_cq = [](ibv_cq*) { return 0; };
  calls.create_comp_channel = [](ibv_context*) { return &card->channel; };
  calls.destroy_comp_channel = [](ibv_comp_channel*) { return 0; };
  calls.get_cq_event = [](ibv_comp_channel*, ibv_cq**, void**) { return -1; };
  calls.ack_cq_events = [](ibv_cq*, unsigned) {};
  calls.reg_mr = [](ibv_pd*, void* memory, size_t length, int) {
    ibv_mr& made = card->regions.emplace_back();
    made.addr = memory;
    made.length = length;
    made.lkey = made.rkey = card->next_key++;
    return &made;
  };
  calls.dereg_mr = [](ibv_mr* region) {
    card->regions.remove_if([=](const ibv_mr& one) { return &one == region; });
    return 0;
  };
  return calls;
}

verbs::ConnectionManager manager() {
  verbs::CmCalls calls;
  calls.create_id = [](rdma_event_channel*, rdma_cm_id**, void*, rdma_port_space) { return -1; };  // likewise
  calls.get_cm_event = [](rdma_event_channel*, rdma_cm_event**) { return -1; };
  calls.create_qp = [](rdma_cm_id* id, ibv_pd*, ibv_qp_init_attr* wanted) {
    card->most_sends = wanted->cap.max_send_wr;
    id->qp = &card->qp;
    return 0;
  };
  calls.destroy_qp = [](rdma_cm_id* id) { id->qp = nullptr; };
  return {"a card of the test", calls, verbs::Library("a card of the test", verbs_calls())};
}

class Session {
 public:
  Session(Role role, uint32_t buffers, bool is_checked, const verbs::ConnectionManager& on)
      : rules_(role, kLongest), is_checked_(is_checked), budget_(kBudget) {
    card->context.device = &card->device;
    card->context.ops.poll_cq = poll;
    card->context.ops.post_send = post_send;
    card->context.ops.post_recv = post_receive;
    card->context.ops.req_notify_cq = [](ibv_cq*, int) { return 0; };
    card->cq.context = card->qp.context = &card->context;
    card->channel.fd = -1;
    card->id.verbs = &card->context;
    const StreamSettings settings{.receive_bytes = kRxLength, .receive_buffers = buffers, .max_send_bytes = kLongest};
    connection_.emplace(on, &card->id, role, settings, budget_);
    rx_reserved_ = kBudget - budget_.left();
    own_.resize(512);
  }
  ~Session() {
    connection_.reset();
    RINGBOLT_ASSERT(budget_.left() == kBudget && card->regions.empty());
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void step(fuzz::Input& input) {
    now_ns_ += input.take<uint32_t>();
    switch (input.take<uint8_t>() % 12) {
      case 0:
        connection_->established(now_ns_);
        break;
      case 1:
        send_command(input);
        break;
      case 2:
        write_with_immediate(input);
        break;
      case 3:
        scribble(input);
        break;
      case 4:
        for (auto n = input.take<uint8_t>(); n > 0; --n) {
          card->execute_one_send();
        }
        break;
      case 5:
        fail(input);
        break;
      case 6:
        write(input);
        break;
      case 7:
        consume(input);
        break;
      case 8:
        connection_->tick(now_ns_);
        break;
      case 9:
        write_registered(input);
        break;
      case 10:
        static_cast<void>(connection_->is_drained());
        connection_->repost();
        break;
      default:
        connection_->progress();
    }
    check();
  }

 private:
  /// Polls, and holds what comes of the one message against the rules.
  void look(fuzz::StreamRules::Reasons allowed) {
    if (!is_checked_) {
      return;
    }
    const bool was_alive = connection_->is_alive();
    const bool may_refuse = card->refuses_in >= 0;
    connection_->progress();
    if (was_alive && !may_refuse) {
      RINGBOLT_ASSERT((allowed & fuzz::StreamRules::only(connection_->protocol().reason())) != 0);
    }
  }
  void send_command(fuzz::Input& input) {
    const auto kind = input.take<uint8_t>();
    std::array<std::byte, 2 * kControlBytes> bytes{};
    size_t length = kControlBytes;
    if (kind % 4 != 0) {
      const ControlMessage message{.opcode = static_cast<Opcode>(kind / 4 % 4),
                                   .select = input.take<uint16_t>(),
                                   .features = kind & 64U,
                                   .address = input.take<uint64_t>(),
                                   .length = kind < 128 ? 100 : input.take<uint32_t>(),
                                   .key = input.take<uint32_t>()};
      std::ranges::copy(message.emit(), bytes.begin());
    } else {
      length = input.take<uint8_t>() % bytes.size();
      std::generate_n(bytes.begin(), length, [&] { return input.take<std::byte>(); });
    }
    const auto sent = std::span(bytes).first(length);
    const auto message = ControlMessage::parse(sent.first(std::min(length, kControlBytes)));
    if (message && length == kControlBytes && message->opcode == Opcode::register_xfer_memory) {
      card->announced.push_back({message->address, message->length, message->key});
    }
    if (card->has_failed || card->receives.empty()) {
      return;
    }
    const bool fits = length <= kControlBytes;
    std::memcpy(reinterpret_cast<std::byte*>(card->receives.front().address), bytes.data(),
                std::min(length, kControlBytes));
    card->receive(fits ? IBV_WC_SUCCESS : IBV_WC_LOC_LEN_ERR, IBV_WC_RECV, static_cast<uint32_t>(length), 0);
    look(rules_.command(sent));
    if (connection_->is_alive() && message) {
      rules_.took(*message);
    }
  }
  /// The card keeps a peer within the region; where in it, and what it says of it, is the peer's.
  void write_with_immediate(fuzz::Input& input) {
    scribble(input);
    const auto bytes = static_cast<uint32_t>(input.take<uint16_t>() % rx().size());
    const auto immediate = input.take<uint8_t>() % 2 == 0 ? bytes : input.take<uint32_t>();
    if (card->has_failed || !card->receive(IBV_WC_SUCCESS, IBV_WC_RECV_RDMA_WITH_IMM, bytes, immediate)) {
      return;
    }
    look(rules_.data(immediate, bytes));
    rules_.took_data(connection_->is_alive() && is_checked_ ? immediate : 0);
  }
  void scribble(fuzz::Input& input) {
    const size_t at = input.take<uint16_t>() % rx().size();
    rx()[at] = input.take<std::byte>();
  }
  void fail(fuzz::Input& input) {
    const auto kind = input.take<uint8_t>();
    if (kind % 4 == 0) {
      card->refuses_in = kind / 4;
      return;
    }
    if (kind % 4 != 1 && !card->sends.empty()) {
      card->finish(card->sends.front().id, static_cast<ibv_wc_status>(1 + kind / 4 % 21), IBV_WC_SEND, 0, 0);
      card->sends.pop_front();
    }
    card->flush();
  }
  void write(fuzz::Input& input) {
    std::array<char, 3000> data{};
    const iovec pieces[] = {{data.data(), input.take<uint8_t>()}, {data.data(), input.take<uint16_t>() % data.size()}};
    const uint64_t skipped = input.take<uint8_t>() % (pieces[0].iov_len + 1);
    const uint64_t written = connection_->write(pieces, skipped);
    RINGBOLT_ASSERT(written <= pieces[0].iov_len + pieces[1].iov_len - skipped);
  }
  void write_registered(fuzz::Input& input) {
    if (!connection_->endpoint().key_of(own_)) {
      connection_->endpoint().register_memory(own_);
    }
    const auto data = std::span<const std::byte>(own_).first(input.take<uint16_t>() % own_.size());
    RINGBOLT_ASSERT(connection_->write_registered(data, *connection_->endpoint().key_of(data)) <= data.size());
  }
  void consume(fuzz::Input& input) {
    const uint32_t unread = connection_->unread();
    connection_->consume(std::min<uint32_t>(unread, input.take<uint16_t>()));
  }
  void check() {
    // What it said in this step, in its order.
    for (const ControlMessage& message : card->said) {
      RINGBOLT_ASSERT(!is_checked_ || !connection_->is_alive() || rules_.may_say(message));
    }
    card->said.clear();
    const auto inside = [&](std::span<const std::byte> piece) {
      return piece.empty() || (piece.data() >= rx().data() && piece.data() + piece.size() <= rx().data() + rx().size());
    };
    const auto pieces = connection_->peek();
    RINGBOLT_ASSERT(inside(pieces[0]) && inside(pieces[1]));
    RINGBOLT_ASSERT(pieces[0].size() + pieces[1].size() == connection_->unread());
    const uint64_t taken = kBudget - budget_.left();
    const Protocol& protocol = connection_->protocol();
    RINGBOLT_ASSERT(taken == rx_reserved_ || taken == rx_reserved_ + protocol.tx_length());
    RINGBOLT_ASSERT(protocol.statistics().bytes_arrived <= protocol.statistics().bytes_sent);
  }
  std::span<std::byte> rx() const { return connection_->endpoint().rx(); }

  fuzz::StreamRules rules_;
  bool is_checked_;
  MemoryBudget budget_;
  std::vector<std::byte> own_;  // what the program sends without a copy
  std::optional<Connection> connection_;
  uint64_t rx_reserved_ = 0;
  uint64_t now_ns_ = 1;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const verbs::ConnectionManager on = manager();
  fuzz::Input input(data, size);
  const auto kind = input.take<uint8_t>();
  Card own;
  card = &own;
  Session session(kind % 2 == 0 ? Role::client : Role::server, 1U + kind / 2U % 3U, kind < 128, on);
  while (!input.is_empty()) {
    session.step(input);
  }
  return 0;
}
