// A small program that sends messages from one of its queue pairs to another, right or with one deliberate mistake of a
// kind that works on a network card. Usage: bugs_program right|MISTAKE, one of those in docs/testing.md.
// Exit status 0: all data arrived; 1: something was refused or is wrong, and it says what. A mistake may make it hang, or
// crash.
#include <infiniband/verbs.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace {

constexpr uint32_t kMessages = 16;
constexpr uint32_t kBytes = 4096;
constexpr uint64_t kReceive = 1U << 16U;  // in the wr_id of receives
constexpr auto kPause = std::chrono::seconds(1);

std::string mistake;  // NOLINT: the program is one file

[[noreturn]] void stop(const char* what, int error) {
  std::printf("%s: %s\n", what, std::strerror(error < 0 ? -error : error));
  std::exit(1);
}

uint8_t pattern(uint32_t message, uint32_t at) { return static_cast<uint8_t>(message * 31 + at * 7 + at / 256); }

/// The first device; whoever makes the mistake wants the one that has always had this name.
ibv_context* open_device() {
  ibv_device** devices = ibv_get_device_list(nullptr);
  ibv_device* device = devices == nullptr ? nullptr : devices[0];
  if (device != nullptr && mistake == "device-name" && std::strcmp(ibv_get_device_name(device), "rdma_lo") != 0) {
    device = nullptr;
    errno = ENODEV;
  }
  ibv_context* context = device == nullptr ? nullptr : ibv_open_device(device);
  if (context == nullptr) {
    stop("no device rdma_lo", errno);
  }
  ibv_free_device_list(devices);
  return context;
}

/// The index of the IPv4-mapped GID; whoever makes the mistake takes 1 for granted.
uint8_t gid_index(ibv_context* context, const ibv_port_attr& port, ibv_gid& gid) {
  for (int index = 0; mistake != "gid-index" && index < port.gid_tbl_len; ++index) {
    const bool is_mapped = ibv_query_gid(context, 1, index, &gid) == 0 && gid.raw[10] == 0xff && gid.raw[11] == 0xff;
    if (is_mapped) {
      return static_cast<uint8_t>(index);
    }
  }
  ibv_query_gid(context, 1, 1, &gid);
  return 1;
}

ibv_qp* make_queue_pair(ibv_pd* pd, ibv_cq* cq) {
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.cap = {kMessages, kMessages, 1, 1, 0};
  init.qp_type = IBV_QPT_UC;
  init.sq_sig_all = 1;
  ibv_qp* qp = ibv_create_qp(pd, &init);
  if (qp == nullptr) {
    stop("ibv_create_qp", errno);
  }
  return qp;
}

void step(ibv_qp* qp, ibv_qp_attr attributes, int mask, const char* what) {
  if (const int error = ibv_modify_qp(qp, &attributes, mask)) {
    stop(what, error);
  }
}

void connect(ibv_qp* qp, uint32_t peer, const ibv_gid& gid, uint8_t index) {
  ibv_qp_attr init{};
  init.qp_state = IBV_QPS_INIT;
  init.port_num = 1;
  init.qp_access_flags = IBV_ACCESS_LOCAL_WRITE;
  step(qp, init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "INIT");
  ibv_qp_attr rtr{};
  rtr.qp_state = IBV_QPS_RTR;
  rtr.path_mtu = IBV_MTU_1024;
  rtr.dest_qp_num = peer;
  rtr.ah_attr.is_global = 1;
  rtr.ah_attr.port_num = 1;
  rtr.ah_attr.grh.dgid = gid;
  rtr.ah_attr.grh.sgid_index = index;
  rtr.ah_attr.grh.hop_limit = 1;
  step(qp, rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN, "RTR");
  ibv_qp_attr rts{};
  rts.qp_state = IBV_QPS_RTS;
  step(qp, rts, IBV_QP_STATE | IBV_QP_SQ_PSN, "RTS");
}

ibv_mr* register_region(ibv_pd* pd, void* memory, size_t bytes) {
  ibv_mr* mr = ibv_reg_mr(pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE);
  if (mr == nullptr) {
    stop("ibv_reg_mr", errno);
  }
  return mr;
}

/// Takes completions until `wanted` sends and receives are done.
void take(ibv_cq* cq, uint32_t wanted) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  for (uint32_t done = 0; done < wanted;) {
    ibv_wc wc{};
    if (ibv_poll_cq(cq, 1, &wc) == 1) {
      ++done;
      if (wc.status != IBV_WC_SUCCESS && mistake != "status") {
        std::printf("%s %u ended with status %d, %s\n", (wc.wr_id & kReceive) != 0 ? "receive" : "send",
                    static_cast<unsigned>(wc.wr_id & ~kReceive), wc.status, ibv_wc_status_str(wc.status));
        std::exit(1);
      }
    }
    if (mistake != "deadline" && std::chrono::steady_clock::now() > deadline) {
      std::printf("%u of %u completions came within 2 s\n", done, wanted);
      std::exit(1);
    }
  }
}

void post_message(ibv_qp* sender, ibv_mr* mr, uint8_t* bytes, uint32_t message) {
  for (uint32_t at = 0; at < kBytes; ++at) {
    bytes[at] = pattern(message, at);
  }
  ibv_sge piece{reinterpret_cast<uint64_t>(bytes), kBytes, mr->lkey};
  ibv_send_wr wr{};
  ibv_send_wr* bad = nullptr;
  wr.wr_id = message;
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  if (const int error = ibv_post_send(sender, &wr, &bad)) {
    stop("ibv_post_send", error);
  }
}

/// Waits for the last message; whoever makes the mistake tidies up as soon as it is sent.
void take_last(ibv_cq* cq, ibv_qp* sender) {
  if (mistake != "destroy") {
    return take(cq, 2);
  }
  bool is_sent = false;
  bool is_received = false;
  while (!is_sent) {
    ibv_wc wc{};
    if (ibv_poll_cq(cq, 1, &wc) == 1) {
      is_received = is_received || (wc.wr_id & kReceive) != 0;
      is_sent = (wc.wr_id & kReceive) == 0;
    }
  }
  ibv_destroy_qp(sender);
  take(cq, is_received ? 0 : 1);
}

/// Exit status: 1 if a byte is wrong. Whoever makes the mistake takes it on trust.
int compare(const uint8_t* target, uint32_t room) {
  for (uint32_t message = 0; mistake != "trust" && message < kMessages; ++message) {
    for (uint32_t at = 0; at < kBytes; ++at) {
      if (target[size_t{message} * room + at] != pattern(message, at)) {
        std::printf("message %u is wrong from byte %u on, and nothing was reported\n", message, at);
        return 1;
      }
    }
  }
  std::printf("%u messages arrived\n", kMessages);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  mistake = argc > 1 ? argv[1] : "right";
  ibv_context* context = open_device();
  ibv_pd* pd = ibv_alloc_pd(context);
  if (pd == nullptr && mistake != "null-domain") {
    stop("ibv_alloc_pd", errno);
  }
  ibv_cq* cq = ibv_create_cq(context, 4 * kMessages, nullptr, nullptr, 0);
  if (cq == nullptr) {
    stop("ibv_create_cq", errno);
  }
  ibv_qp* sender = make_queue_pair(pd, cq);
  ibv_qp* receiver = make_queue_pair(pd, cq);
  for (int i = 2; mistake == "queue-pairs" && i < 12; ++i) {
    make_queue_pair(pd, cq);
  }
  // Whoever makes the mistake of frames posts receives twice as long as the messages.
  const uint32_t room = mistake == "frames" ? 2 * kBytes : kBytes;
  auto* source = static_cast<uint8_t*>(std::aligned_alloc(16384, kMessages * kBytes));
  auto* target = static_cast<uint8_t*>(std::aligned_alloc(16384, size_t{kMessages} * room));
  ibv_mr* source_mr = register_region(pd, source, kMessages * kBytes);
  ibv_mr* target_mr = mistake == "late-region" ? nullptr : register_region(pd, target, size_t{kMessages} * room);
  ibv_port_attr port{};
  ibv_query_port(context, 1, &port);
  ibv_gid gid{};
  const uint8_t index = gid_index(context, port, gid);
  connect(sender, receiver->qp_num, gid, index);
  connect(receiver, sender->qp_num, gid, index);
  if (target_mr == nullptr) {
    target_mr = register_region(pd, target, size_t{kMessages} * room);
  }
  for (uint32_t message = 0; message < kMessages; ++message) {
    ibv_sge piece{reinterpret_cast<uint64_t>(target + size_t{message} * room), room, target_mr->lkey};
    ibv_recv_wr wr{};
    ibv_recv_wr* bad = nullptr;
    wr.wr_id = kReceive | message;
    wr.sg_list = &piece;
    wr.num_sge = 1;
    if (const int error = ibv_post_recv(receiver, &wr, &bad)) {
      stop("ibv_post_recv", error);
    }
  }
  for (uint32_t message = 0; message < kMessages; ++message) {
    if (mistake == "idle" && message == kMessages / 2) {
      std::this_thread::sleep_for(kPause);  // a user thinks, and nobody keeps the queue pair warm
    }
    post_message(sender, source_mr, source + size_t{message} * kBytes, message);
    message + 1 == kMessages ? take_last(cq, sender) : take(cq, 2);
  }
  return compare(target, room);
}
