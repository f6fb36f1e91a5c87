// A whole device against a peer that writes whatever it likes into the lanes between them. The victim posts, polls and
// connects as programs do. Whatever comes: no call hangs, and of the victim's memory only posted receives and regions
// with remote access change.

#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/assert.h"
#include "hostile_peer.h"
#include "input.h"

#undef ibv_reg_mr

namespace {

using namespace ringbolt;

constexpr size_t kZoneBytes = 16384;
constexpr int kMaxSteps = 64;
constexpr int kReceives = 8;

/// The victim's memory, in zones. `kLocal` is registered for local use and never posted.
enum Zone : size_t { kBefore, kReceive, kBetween, kRemote, kLocal, kAfter, kZones };

struct Memory {
  std::vector<uint8_t> bytes = std::vector<uint8_t>(kZones * kZoneBytes);

  uint8_t* zone(Zone which) { return bytes.data() + which * kZoneBytes; }
  static uint8_t pattern(size_t at) { return static_cast<uint8_t>(at * 131 + at / 251); }
  void fill() {
    for (size_t at = 0; at < bytes.size(); ++at) {
      bytes[at] = pattern(at);
    }
  }
  void check_untouched(Zone which, size_t from = 0) const {
    for (size_t at = which * kZoneBytes + from; at < (which + 1) * kZoneBytes; ++at) {
      RINGBOLT_ASSERT(bytes[at] == pattern(at));
    }
  }
};

/// The victim: the default device, opened once, with what outlives a single input.
struct Victim {
  std::string runtime;
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_gid gid = {};
  Memory memory;
  ibv_mr* receive = nullptr;
  ibv_mr* remote = nullptr;
  ibv_mr* local = nullptr;

  Victim() {
    std::string pattern = (std::filesystem::temp_directory_path() / "rb-hostile-XXXXXX").string();
    RINGBOLT_ASSERT(mkdtemp(pattern.data()) != nullptr);
    runtime = pattern;
    setenv("RINGBOLT_RUNTIME_DIR", runtime.c_str(), 1);
    ibv_device** list = ibv_get_device_list(nullptr);
    RINGBOLT_ASSERT(list != nullptr && list[0] != nullptr);
    context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    RINGBOLT_ASSERT(context != nullptr && ibv_query_gid(context, 1, 0, &gid) == 0);
    pd = ibv_alloc_pd(context);
    receive = ibv_reg_mr(pd, memory.zone(kReceive), kZoneBytes, IBV_ACCESS_LOCAL_WRITE);
    remote = ibv_reg_mr(
        pd, memory.zone(kRemote), kZoneBytes,
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
    local = ibv_reg_mr(pd, memory.zone(kLocal), kZoneBytes, 0);
    RINGBOLT_ASSERT(receive != nullptr && remote != nullptr && local != nullptr);
  }
};

/// One queue pair of the victim, connected to the hostile peer for the time of one input.
class Session {
 public:
  Session(Victim& victim, fuzz::HostilePeer& peer, ibv_qp_type type) : victim_(victim), peer_(peer) {
    cq_ = ibv_create_cq(victim.context, 64, nullptr, nullptr, 0);
    ibv_qp_init_attr init = {};
    init.send_cq = init.recv_cq = cq_;
    init.cap = {
        .max_send_wr = 16, .max_recv_wr = 2 * kReceives, .max_send_sge = 2, .max_recv_sge = 2, .max_inline_data = 64};
    init.qp_type = type;
    init.sq_sig_all = 1;
    qp_ = ibv_create_qp(victim.pd, &init);
    RINGBOLT_ASSERT(qp_ != nullptr);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() {
    RINGBOLT_ASSERT(ibv_destroy_qp(qp_) == 0);
    RINGBOLT_ASSERT(ibv_destroy_cq(cq_) == 0);
  }

  bool connect() {
    peer_qpn_ = peer_.next_qpn();
    ibv_qp_attr attr = {};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    modify(attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    for (int i = 0; i < kReceives; ++i) {
      post_receive(0, 1024);
    }
    const bool is_rc = qp_->qp_type == IBV_QPT_RC;
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = peer_qpn_;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.grh.dgid = victim_.gid;
    attr.max_dest_rd_atomic = 4;
    modify(attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                     (is_rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
    attr.qp_state = IBV_QPS_RTS;
    attr.max_rd_atomic = 4;
    modify(attr, IBV_QP_STATE | IBV_QP_SQ_PSN |
                     (is_rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0));
    return peer_.connect(peer_qpn_, *qp_, victim_.gid);
  }
  void disconnect() { peer_.disconnect(peer_qpn_, qp_->qp_num); }

  /// Receives are posted in the first half of their zone: the second half must never change.
  void post_receive(uint32_t at, uint32_t length) {
    ibv_sge piece = {reinterpret_cast<uintptr_t>(victim_.memory.zone(kReceive)) + at % (kZoneBytes / 4),
                     static_cast<uint32_t>(length % (kZoneBytes / 4)), victim_.receive->lkey};
    ibv_recv_wr wr = {};
    wr.sg_list = &piece;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    static_cast<void>(ibv_post_recv(qp_, &wr, &bad));  // a full or broken queue may refuse
  }

  void post_send(fuzz::Input& input) {
    constexpr std::array kOpcodes = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};
    ibv_send_wr wr = {};
    wr.opcode = kOpcodes[input.take<uint8_t>() % kOpcodes.size()];
    // READs and atomics write to the piece, so it lies where receives do.
    ibv_sge piece = {reinterpret_cast<uintptr_t>(victim_.memory.zone(kReceive)),
                     wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8U : input.take<uint16_t>() % uint32_t{kZoneBytes / 4},
                     victim_.receive->lkey};
    wr.sg_list = &piece;
    wr.num_sge = 1;
    wr.wr.rdma.remote_addr = input.take<uint64_t>();
    wr.wr.rdma.rkey = input.take<uint32_t>();
    if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      wr.wr.atomic = {
          .remote_addr = input.take<uint64_t>(), .compare_add = 1, .swap = 0, .rkey = input.take<uint32_t>()};
    }
    ibv_send_wr* bad = nullptr;
    static_cast<void>(ibv_post_send(qp_, &wr, &bad));
  }

  void poll() {
    std::array<ibv_wc, 8> wc;
    const int got = ibv_poll_cq(cq_, static_cast<int>(wc.size()), wc.data());
    RINGBOLT_ASSERT(got <= static_cast<int>(wc.size()));
    for (int i = 0; i < got; ++i) {
      const ibv_wc& one = wc[static_cast<size_t>(i)];
      RINGBOLT_ASSERT(one.qp_num == qp_->qp_num);
      RINGBOLT_ASSERT(one.status != IBV_WC_SUCCESS || one.opcode != IBV_WC_RECV || one.byte_len < kZoneBytes / 4);
    }
  }

 private:
  void modify(ibv_qp_attr& attr, int mask) { RINGBOLT_ASSERT(ibv_modify_qp(qp_, &attr, mask) == 0); }

  Victim& victim_;
  fuzz::HostilePeer& peer_;
  ibv_cq* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
  uint32_t peer_qpn_ = 0;
};

void scribble(link::LaneMemory& lane, fuzz::Input& input) {
  const auto at = input.take<uint32_t>() % (sizeof lane / 4);
  const auto value = input.take<uint32_t>();
  std::memcpy(reinterpret_cast<std::byte*>(&lane) + size_t{at} * 4, &value, sizeof value);
}

/// A slot with the fuzzer's header and body in the next place that the victim will look at. Its bits decide whether the
/// places for keys and addresses get good ones: a fuzzer can't guess them.
void publish(link::LaneMemory& lane, uint32_t& next, Victim& victim, fuzz::Input& input) {
  link::Slot& slot = lane.slots[next % link::kLaneSlots];
  link::SlotHeader header = input.take<link::SlotHeader>();
  header.kind = static_cast<link::SlotKind>(static_cast<uint8_t>(header.kind) % 11);
  const auto help = input.take<uint8_t>();
  if ((help & 1U) != 0) {
    header.length %= 2048;
  }
  if ((help & 2U) != 0) {
    header.data_at %= link::kLaneDataBytes;
  }
  auto body = input.take<std::array<std::byte, link::kInlineBytes>>();
  const Zone zone = (help & 16U) != 0 ? kLocal : kRemote;
  const uint64_t address = reinterpret_cast<uintptr_t>(victim.memory.zone(zone)) + input.take<uint16_t>();
  const uint32_t key = zone == kLocal ? victim.local->rkey : victim.remote->rkey;
  if ((help & 4U) != 0) {
    std::memcpy(body.data(), &address, sizeof address);
  }
  if ((help & 8U) != 0) {
    // Where the key lies depends on the kind.
    const size_t at = header.kind == link::SlotKind::atomic         ? offsetof(link::AtomicFields, key)
                      : header.kind == link::SlotKind::send_private ? offsetof(link::PrivateFields, key)
                                                                    : offsetof(link::RemoteFields, key);
    std::memcpy(body.data() + at, &key, sizeof key);
  }
  slot.header = header;
  std::memcpy(slot.body, body.data(), body.size());
  slot.sequence.store(++next);
}

void play(Session& session, Victim& victim, fuzz::HostilePeer& peer, fuzz::Input& input) {
  uint32_t next = 0;
  for (int step = 0; step < kMaxSteps && !input.is_empty(); ++step) {
    switch (input.take<uint8_t>() % 10) {
      case 0:
      case 1:
      case 2:
      case 3:
        publish(peer.incoming(), next, victim, input);
        session.poll();
        break;
      case 4:
        scribble(peer.incoming(), input);
        break;
      case 5:
        scribble(peer.outgoing(), input);
        break;
      case 6:
        session.post_receive(input.take<uint32_t>(), input.take<uint32_t>());
        break;
      case 7:
        session.post_send(input);
        break;
      case 8:
        peer.outgoing().consumed.store(input.take<uint32_t>());
        session.poll();
        break;
      default:
        session.poll();
        break;
    }
  }
  session.poll();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Never destroyed: the device's service thread lives as long as the process.
  static auto* victim = new Victim;
  static auto* peer = new fuzz::HostilePeer(victim->runtime);
  static const bool cleans_up = std::atexit([] { std::filesystem::remove_all(victim->runtime); }) == 0;
  RINGBOLT_ASSERT(cleans_up);
  fuzz::Input input(data, size);
  victim->memory.fill();
  {
    Session session(*victim, *peer, input.take<uint8_t>() % 2 == 0 ? IBV_QPT_RC : IBV_QPT_UC);
    RINGBOLT_ASSERT(session.connect());
    play(session, *victim, *peer, input);
    session.disconnect();
  }
  for (const Zone zone : {kBefore, kBetween, kLocal, kAfter}) {
    victim->memory.check_untouched(zone);
  }
  victim->memory.check_untouched(kReceive, kZoneBytes / 2);
  return 0;
}
