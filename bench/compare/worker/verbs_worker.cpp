// Ringbolt's side of the comparison: a plain verbs program, RC, that polls both of its completion queues.
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "serve.h"
#include "shareable_memory.h"
#include "verbs_endpoint.h"

namespace ringbolt::bench {
namespace {

class VerbsChannel {
 public:
  VerbsChannel(const Options& options, Control& control)
      : rank(options.rank), ranks(options.ranks), endpoint_(options.memory), arena(endpoint_.arena()) {
    endpoint_.connect(control, rank, ranks);
    // Of a pair, one queue pair carries both directions; in a ring one sends to the next rank, the other receives.
    send_qp_ = ranks == 2 && rank == 1 ? endpoint_.to_previous() : endpoint_.to_next();
    receive_qp_ = ranks == 2 ? send_qp_ : endpoint_.to_previous();
    const uint64_t zero = 0;
    std::memcpy(arena.slot(2), &zero, sizeof zero);
  }
  std::string description() const {
    return fmt::format("verbs, RC, {}, memory from {}", verbs_library_path(), endpoint_.memory_source());
  }

  void expect(std::size_t size) {
    ibv_sge sge = piece(arena.incoming(), size);
    ibv_recv_wr work{};
    work.sg_list = &sge;
    work.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    check(ibv_post_recv(receive_qp_, &work, &bad), "ibv_post_recv");
  }
  void send(std::size_t size) {
    ibv_sge sge = piece(arena.outgoing(), size);
    post(work_of(IBV_WR_SEND, sge, IBV_SEND_SIGNALED));
    ++unfinished_;
    is_inline_ = size <= endpoint_.inline_bytes();
  }
  void receive(std::size_t size) {
    const ibv_wc completion = poll_one(endpoint_.receive_cq());
    if (completion.byte_len != size) {
      throw std::runtime_error(fmt::format("received {} bytes instead of {}", completion.byte_len, size));
    }
  }
  /// In a ring an inline payload may be rewritten at once, as after an eager send of MPI; completions are then fetched
  /// when there are some. A pair polls every completion before it goes on.
  void flush() {
    const uint32_t may_stay = ranks > 2 && is_inline_ ? kSignalEvery : 0;
    ibv_wc completion{};
    while (unfinished_ > may_stay || (unfinished_ > 0 && ibv_poll_cq(endpoint_.send_cq(), 1, &completion) == 1)) {
      if (unfinished_ > may_stay) {
        completion = poll_one(endpoint_.send_cq());
      }
      check_success(completion);
      --unfinished_;
    }
  }
  void progress() {}

  void put(uint64_t value) {
    std::memcpy(arena.slot(0), &value, sizeof value);
    ibv_sge sge = piece(arena.slot(0), sizeof value);
    const bool is_signalled = ++puts_ % kSignalEvery == 0;
    ibv_send_wr work = work_of(IBV_WR_RDMA_WRITE, sge, is_signalled ? IBV_SEND_SIGNALED : 0);
    aim(work, arena.slot(1));
    post(work);
    if (is_signalled) {
      poll_one(endpoint_.send_cq());
    }
  }
  void get(std::size_t size) {
    ibv_sge sge = piece(arena.incoming(), size);
    ibv_send_wr work = work_of(IBV_WR_RDMA_READ, sge, IBV_SEND_SIGNALED);
    aim(work, arena.outgoing());
    post(work);
    poll_one(endpoint_.send_cq());
  }
  uint64_t fetch_add() {
    ibv_sge sge = piece(arena.slot(3), sizeof(uint64_t));
    ibv_send_wr work = work_of(IBV_WR_ATOMIC_FETCH_AND_ADD, sge, IBV_SEND_SIGNALED);
    work.wr.atomic.remote_addr = remote(arena.slot(2));
    work.wr.atomic.rkey = endpoint_.peer(1 - rank).rkey;
    work.wr.atomic.compare_add = 1;
    post(work);
    poll_one(endpoint_.send_cq());
    uint64_t old = 0;
    std::memcpy(&old, arena.slot(3), sizeof old);
    return old;
  }

  void stream_in_begin(uint64_t count, const std::string& operation) {
    if (operation == "rate_send") {
      prepare_receives();
      expected_ = count;
      posted_ = 0;
      while (posted_ < VerbsEndpoint::kReceiveDepth && posted_ < expected_) {
        post_receives();
      }
    }
  }
  void stream_out(uint64_t count, const std::string& operation) {
    const bool is_write = operation == "rate_write";
    if (!is_write) {
      expect(sizeof(uint64_t));
    }
    prepare_sends(is_write);
    uint64_t done = 0;
    for (uint64_t sent = 0; sent < count; sent += kListLength) {
      while (sent + kListLength - done > VerbsEndpoint::kSendDepth) {
        done += reap_sends();
      }
      post_list(sent);
    }
    while (done < count) {
      done += reap_sends();
    }
    if (!is_write) {
      receive(sizeof(uint64_t));
    }
  }
  void stream_in(uint64_t count, const std::string& operation) {
    if (operation == "rate_write") {
      wait_for_word(*this, arena.slot((count - 1) % kSignalEvery), seed_of(0, count - 1));
      return;
    }
    std::array<ibv_wc, kListLength> completions{};
    uint64_t taken = 0;
    while (taken < count) {
      const int n = ibv_poll_cq(endpoint_.receive_cq(), kListLength, completions.data());
      check(n < 0 ? EIO : 0, "ibv_poll_cq");
      for (int i = 0; i < n; ++i) {
        check_success(completions[static_cast<unsigned>(i)]);
        expect_holds(arena.slot(taken % kSlots), sizeof taken, seed_of(0, taken));
        ++taken;
      }
      if (posted_ < expected_ && posted_ - taken <= VerbsEndpoint::kReceiveDepth - kListLength) {
        post_receives();
      }
    }
    send(sizeof(uint64_t));
    flush();
  }

 private:
  static constexpr unsigned kListLength = 32;   ///< work requests per post
  static constexpr unsigned kSignalEvery = 64;  ///< one of so many sends asks for a completion
  static_assert(kSlots == VerbsEndpoint::kReceiveDepth);

  static void check(int error, const char* call) {
    if (error != 0) [[unlikely]] {
      throw std::runtime_error(fmt::format("{}: {}", call, std::strerror(error)));
    }
  }
  static void check_success(const ibv_wc& completion) {
    if (completion.status != IBV_WC_SUCCESS) [[unlikely]] {
      throw std::runtime_error(fmt::format("completion of work request {}: {}", completion.wr_id,
                                           ibv_wc_status_str(completion.status)));
    }
  }
  ibv_sge piece(std::byte* at, std::size_t size) const {
    return ibv_sge{reinterpret_cast<uint64_t>(at), static_cast<uint32_t>(size), endpoint_.lkey()};
  }
  uint64_t remote(const std::byte* ours) const {
    return endpoint_.peer(1 - rank).arena_base + static_cast<uint64_t>(ours - arena.base);
  }
  ibv_send_wr work_of(ibv_wr_opcode opcode, ibv_sge& sge, unsigned flags) const {
    ibv_send_wr work{};
    work.sg_list = &sge;
    work.num_sge = 1;
    work.opcode = opcode;
    const bool fits_inline = sge.length <= endpoint_.inline_bytes() && (opcode == IBV_WR_SEND || opcode == IBV_WR_RDMA_WRITE);
    work.send_flags = flags | (fits_inline ? unsigned{IBV_SEND_INLINE} : 0U);
    return work;
  }
  void aim(ibv_send_wr& work, const std::byte* at) const {
    work.wr.rdma.remote_addr = remote(at);
    work.wr.rdma.rkey = endpoint_.peer(1 - rank).rkey;
  }
  void post(ibv_send_wr work) {
    ibv_send_wr* bad = nullptr;
    check(ibv_post_send(send_qp_, &work, &bad), "ibv_post_send");
  }
  static ibv_wc poll_one(ibv_cq* cq) {
    ibv_wc completion{};
    int n = 0;
    while ((n = ibv_poll_cq(cq, 1, &completion)) == 0) {
    }
    check(n < 0 ? EIO : 0, "ibv_poll_cq");
    check_success(completion);
    return completion;
  }
  uint64_t reap_sends() {
    std::array<ibv_wc, 16> completions{};
    const int n = ibv_poll_cq(endpoint_.send_cq(), static_cast<int>(completions.size()), completions.data());
    check(n < 0 ? EIO : 0, "ibv_poll_cq");
    for (int i = 0; i < n; ++i) {
      check_success(completions[static_cast<unsigned>(i)]);
    }
    return static_cast<uint64_t>(n) * kSignalEvery;
  }
  /// Work requests for 64 messages in two lists, built once: the data path only rewrites their payload.
  struct SendLists {
    std::array<ibv_sge, kSignalEvery> pieces;
    std::array<ibv_send_wr, kSignalEvery> work;
  };
  void prepare_sends(bool is_write) {
    for (unsigned i = 0; i < kSignalEvery; ++i) {
      sends_.pieces[i] = piece(arena.slot(i), sizeof(uint64_t));
      const bool is_signalled = i == kSignalEvery - 1;
      sends_.work[i] =
          work_of(is_write ? IBV_WR_RDMA_WRITE : IBV_WR_SEND, sends_.pieces[i], is_signalled ? IBV_SEND_SIGNALED : 0);
      if (is_write) {
        aim(sends_.work[i], arena.slot(i));
      }
      sends_.work[i].next = (i + 1) % kListLength != 0 ? &sends_.work[i + 1] : nullptr;
    }
  }
  /// Posts the messages first..first+31 as one list; every 64th message of the stream is signalled.
  void post_list(uint64_t first) {
    const unsigned slot = first % kSignalEvery;
    for (unsigned i = 0; i < kListLength; ++i) {
      fill(arena.slot(slot + i), sizeof first, seed_of(0, first + i));
    }
    ibv_send_wr* bad = nullptr;
    check(ibv_post_send(send_qp_, &sends_.work[slot], &bad), "ibv_post_send");
  }
  /// Receives for every slot, in lists of 32, built once.
  struct ReceiveLists {
    std::array<ibv_sge, kSlots> pieces;
    std::array<ibv_recv_wr, kSlots> work;
  };
  void prepare_receives() {
    for (unsigned i = 0; i < kSlots; ++i) {
      receives_.pieces[i] = piece(arena.slot(i), sizeof(uint64_t));
      receives_.work[i] = ibv_recv_wr{i, (i + 1) % kListLength != 0 ? &receives_.work[i + 1] : nullptr,
                                      &receives_.pieces[i], 1};
    }
  }
  void post_receives() {
    ibv_recv_wr* bad = nullptr;
    check(ibv_post_recv(receive_qp_, &receives_.work[posted_ % kSlots], &bad), "ibv_post_recv");
    posted_ += kListLength;
  }

 public:
  unsigned rank;
  unsigned ranks;

 private:
  VerbsEndpoint endpoint_;

 public:
  Arena arena;

 private:
  ibv_qp* send_qp_ = nullptr;
  ibv_qp* receive_qp_ = nullptr;
  SendLists sends_{};
  ReceiveLists receives_{};
  uint32_t unfinished_ = 0;  ///< sends of send() whose completions were not fetched
  bool is_inline_ = false;   ///< the last of them was inline
  uint64_t puts_ = 0;
  uint64_t expected_ = 0;  ///< receives of the running stream
  uint64_t posted_ = 0;    ///< how many of them are posted
};

}  // namespace
}  // namespace ringbolt::bench

int main(int argc, char** argv) { return ringbolt::bench::worker_main<ringbolt::bench::VerbsChannel>(argc, argv); }
