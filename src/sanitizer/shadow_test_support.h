#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/json_reader.h"
#include "sanitizer/shadow.h"

/// A program, its sanitizer, and a device that does what a test tells it to; all in one thread.
namespace ringbolt::sanitizer::testing {

/// What the device has been given, and what it has to say.
struct FakeDevice {
  struct Posted {
    uint64_t wr_id = 0;
    std::vector<ibv_sge> pieces;
    unsigned flags = 0;
  };
  std::deque<Posted> sends;
  std::deque<Posted> receives;
  std::deque<ibv_wc> completions;
  uint32_t registered = 0;
  size_t room = SIZE_MAX;     ///< requests that it takes still; beyond, ENOMEM
  bool names_refused = true;  ///< else -ENOMEM, and bad_wr as it was; queue pairs connected later are told of so
  size_t posts = 0;           ///< calls, each with a list

  template <class Wr>
  int take(std::deque<Posted>& queue, Wr* wr, Wr** bad) {
    ++posts;
    for (; wr != nullptr; wr = wr->next) {
      if (room == 0 && !names_refused) {
        return -ENOMEM;
      }
      if (room == 0) {
        *bad = wr;
        return ENOMEM;
      }
      room -= room == SIZE_MAX ? 0 : 1;
      Posted one{wr->wr_id, {wr->sg_list, wr->sg_list + wr->num_sge}, 0};
      if constexpr (std::is_same_v<Wr, ibv_send_wr>) {
        one.flags = wr->send_flags;
      }
      queue.push_back(one);
    }
    return 0;
  }
  /// The oldest receive gets these bytes and is complete; its program has not polled.
  void receive(const std::string& bytes, ibv_wc_status status = IBV_WC_SUCCESS) {
    const Posted one = receives.front();
    receives.pop_front();
    write(one, bytes);
    complete(one, IBV_WC_RECV, status, bytes.size());
  }
  void complete_send(ibv_wc_opcode opcode = IBV_WC_SEND, const std::string& answer = "",
                     ibv_wc_status status = IBV_WC_SUCCESS) {
    const Posted one = sends.front();
    sends.pop_front();
    write(one, answer);
    if ((one.flags & IBV_SEND_SIGNALED) != 0 || status != IBV_WC_SUCCESS) {
      complete(one, opcode, status, answer.size());
    }
  }
  static void write(const Posted& one, const std::string& bytes) {
    size_t at = 0;
    for (const ibv_sge& piece : one.pieces) {
      const size_t count = std::min<size_t>(piece.length, bytes.size() - at);
      std::memcpy(reinterpret_cast<void*>(piece.addr), bytes.data() + at, count);
      at += count;
    }
  }
  void complete(const Posted& one, ibv_wc_opcode opcode, ibv_wc_status status, size_t bytes) {
    ibv_wc wc{};
    wc.wr_id = one.wr_id;
    wc.opcode = opcode;
    wc.status = status;
    wc.byte_len = static_cast<uint32_t>(bytes);
    completions.push_back(wc);
  }
};
inline FakeDevice device;

inline Shadow::Calls device_calls() {
  return {[](ibv_qp*, ibv_send_wr* wr, ibv_send_wr** bad) { return device.take(device.sends, wr, bad); },
          [](ibv_qp*, ibv_recv_wr* wr, ibv_recv_wr** bad) { return device.take(device.receives, wr, bad); },
          [](ibv_srq*, ibv_recv_wr* wr, ibv_recv_wr** bad) { return device.take(device.receives, wr, bad); },
          [](ibv_cq*, int count, ibv_wc* wc) {
            int got = 0;
            for (; got < count && !device.completions.empty(); ++got) {
              wc[got] = device.completions.front();
              device.completions.pop_front();
            }
            return got;
          },
          {[](ibv_pd*, void*, size_t, uint32_t* lkey) -> void* {
             *lkey = 9000 + ++device.registered;
             return &device;
           },
           [](void*) { --device.registered; }},
          "/no/such/folder/races"};
}

/// A connected queue pair and registered memory. What the sanitizer says is read from its lines of JSON.
class Shadowed : public ::testing::Test {
 protected:
  static constexpr uint32_t kLkey = 77;
  static constexpr size_t kMemoryBytes = 4096;

  Shadowed() {
    std::string pattern = "/tmp/rb-shadow-XXXXXX";
    ::close(::mkstemp(pattern.data()));
    findings_ = pattern;
    ::setenv("RINGBOLT_SANITIZE_JSON", findings_.c_str(), 1);
    ::setenv("RINGBOLT_SANITIZE_LOG", "/dev/null", 1);
    device = {};
    cq.cqe = 1000;
  }
  ~Shadowed() override {
    shadow.reset();
    EXPECT_EQ(device.registered, 0U) << "regions of ours are left";
    ::unlink(findings_.c_str());
    ::unsetenv("RINGBOLT_SANITIZE_JSON");
    ::unsetenv("RINGBOLT_SANITIZE_LOG");
  }
  void start(std::string_view wish = "on", uint32_t depth = 100, const Shadow::Calls& calls = device_calls()) {
    shadow = std::make_unique<Shadow>(parse_wish(wish), calls);
    shadow->queue_made(cq, here());
    mr.addr = memory.data();
    mr.length = memory.size();
    mr.lkey = kLkey;
    mr.pd = &pd;
    shadow->region_made(mr, reinterpret_cast<uint64_t>(mr.addr), IBV_ACCESS_LOCAL_WRITE, here());
    connect(qp, 5, depth);
  }
  void connect(ibv_qp& pair, uint32_t number, uint32_t depth = 100) {
    pair.pd = &pd;
    pair.qp_num = number;
    pair.qp_type = IBV_QPT_RC;
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = &cq;
    shadow->queue_pair_made(pair, wanted, {depth, depth, 4, 4, 64}, {true, device.names_refused, false}, here());
    ibv_qp_attr attributes{};
    attributes.dest_qp_num = 9U << 14U;
    for (const ibv_qp_state state : {IBV_QPS_RTR, IBV_QPS_RTS}) {
      attributes.qp_state = state;
      shadow->queue_pair_changed(pair, attributes, IBV_QP_STATE | IBV_QP_DEST_QPN, here());
    }
  }

  /// Another place of the program with each call: the same finding is told once for each.
  base::CallSite here() { return {{++site_, 0, 0}}; }
  ibv_sge piece(size_t offset, uint32_t length) {
    return {reinterpret_cast<uintptr_t>(memory.data() + offset), length, kLkey};
  }
  int send(size_t offset, uint32_t length, ibv_wr_opcode opcode = IBV_WR_SEND, unsigned flags = IBV_SEND_SIGNALED,
           uint64_t remote = 0x10000, ibv_qp* by = nullptr) {
    ibv_sge one = piece(offset, length);
    ibv_send_wr wr{};
    wr.wr_id = ++wr_id;
    wr.sg_list = &one;
    wr.num_sge = 1;
    wr.opcode = opcode;
    wr.send_flags = flags;
    wr.wr.rdma.remote_addr = remote;
    wr.wr.rdma.rkey = 3;
    ibv_send_wr* bad = nullptr;
    return shadow->post_send(by == nullptr ? &qp : by, &wr, &bad, here());
  }
  int receive(size_t offset, uint32_t length) {
    ibv_sge one = piece(offset, length);
    ibv_recv_wr wr{};
    wr.wr_id = ++wr_id;
    wr.sg_list = &one;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    return shadow->post_receive(&qp, &wr, &bad, here());
  }
  /// The `wr_id`s of what is polled.
  std::vector<uint64_t> poll() {
    std::array<ibv_wc, 64> wc{};
    const int count = shadow->poll_cq(&cq, wc.size(), wc.data(), here());
    std::vector<uint64_t> ids;
    std::transform(wc.begin(), wc.begin() + count, std::back_inserter(ids),
                   [](const ibv_wc& one) { return one.wr_id; });
    return ids;
  }
  std::string text(size_t offset, size_t length) const {
    return {reinterpret_cast<const char*>(memory.data() + offset), length};
  }
  void write(size_t offset, std::string_view bytes) { std::memcpy(memory.data() + offset, bytes.data(), bytes.size()); }

  /// The rules of what was found since the last call.
  std::vector<std::string> rules() {
    std::ifstream file(findings_);
    std::vector<std::string> all;
    for (std::string line; std::getline(file, line);) {
      all.push_back(base::Json::parse(line).at("rule").get<std::string>());
    }
    const std::vector<std::string> fresh(all.begin() + static_cast<std::ptrdiff_t>(told_), all.end());
    told_ = all.size();
    return fresh;
  }

  alignas(4096) std::array<std::byte, kMemoryBytes> memory{};
  ibv_pd pd{};
  ibv_cq cq{};
  ibv_mr mr{};
  ibv_qp qp{};
  ibv_srq srq{};
  uint64_t wr_id = 0;
  std::unique_ptr<Shadow> shadow;

 private:
  std::string findings_;
  size_t told_ = 0;
  uintptr_t site_ = 0x1000;
};

using Rules = std::vector<std::string>;

}  // namespace ringbolt::sanitizer::testing
