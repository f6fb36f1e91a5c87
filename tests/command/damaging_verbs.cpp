// A verbs library that is wrong on purpose: it passes every call on to another one ($DAMAGE_REAL, a path), and does one
// thing badly ($DAMAGE, a word that stands below) to the $DAMAGE_AT'th message that it could do it to.
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

using Bytes = std::vector<std::byte>;

/// Bears whatever the program did not post.
constexpr uint64_t kNobodys = UINT64_MAX;

struct Posted {
  std::byte* at = nullptr;
  uint32_t length = 0;
  Bytes before;  // what the buffer held when it was posted
  ibv_wr_opcode opcode = IBV_WR_SEND;
  uint64_t remote = 0;  // of a READ or atomic
};

/// A completion in its place: after so many others.
struct MadeUp {
  uint64_t after = 0;
  ibv_cq* cq = nullptr;
  ibv_wc completion{};
};

/// All of one process; its programs have one thread.
struct Damager {
  void* real = nullptr;
  std::string kind;
  uint64_t at = 0;
  uint64_t seen = 0;
  ibv_context_ops ops{};
  std::map<std::pair<uint32_t, uint64_t>, Posted> receives;  // by queue pair and id
  std::map<std::pair<uint32_t, uint64_t>, Posted> sends;
  std::map<uint32_t, MadeUp> made_up;   // by queue pair: completions of what was never posted
  std::map<uint32_t, uint64_t> posted;  // sends, of each queue pair
  std::map<uint32_t, uint64_t> completed;
  std::map<uint32_t, ibv_qp*> queue_pairs;         // that something was sent on
  std::map<uint32_t, uint64_t> lowest;             // of each, the lowest address that it reads from
  std::map<uint32_t, Bytes> last;                  // received, of each queue pair
  std::map<uint32_t, std::deque<ibv_wc>> waiting;  // behind one that is made up
  std::deque<std::pair<ibv_cq*, ibv_wc>> extra;    // completions that nobody asked for
  Bytes first;                                     // that was received
  std::map<uint32_t, std::deque<uint64_t>> words;  // of queue pairs that write, the places of the last words sent
  bool is_stalled = false;
  bool has_struck = false;

  /// Whether this is the one.
  bool hits(const char* wanted) { return kind == wanted && seen++ == at; }
  /// Whether this or one behind it is the one: for damage that does not succeed at every message.
  bool is_due(const char* wanted) { return kind == wanted && !has_struck && seen++ >= at; }
};

Damager& damager() {
  static Damager one = [] {
    Damager made;
    const char* path = std::getenv("DAMAGE_REAL");
    made.real = path == nullptr ? nullptr : ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (made.real == nullptr) {
      std::fprintf(stderr, "DAMAGE_REAL names no library\n");
      std::abort();
    }
    const char* kind = std::getenv("DAMAGE");
    made.kind = kind == nullptr ? "" : kind;
    const char* at = std::getenv("DAMAGE_AT");
    made.at = at == nullptr ? 100 : std::strtoull(at, nullptr, 10);
    return made;
  }();
  return one;
}

template <class Function>
Function* real(const char* name, Function*) {
  return reinterpret_cast<Function*>(::dlsym(damager().real, name));
}

void make_up_completion(ibv_qp* qp, const ibv_send_wr& request) {
  ibv_wc one{};
  one.wr_id = request.wr_id;
  one.status = IBV_WC_SUCCESS;
  one.opcode = request.opcode == IBV_WR_SEND ? IBV_WC_SEND : IBV_WC_RDMA_WRITE;
  one.qp_num = qp->qp_num;
  Damager& all = damager();
  const uint32_t number = qp->qp_num;
  if (all.made_up.count(number) != 0) {
    all.waiting[number].push_back(one);  // all of them are made up: any order will do
    return;
  }
  all.made_up[number] = {all.posted[number], qp->send_cq, one};
}

/// A request of the program's that the device gets besides, on any queue pair; the program sees no completion of it.
bool post_unseen(ibv_qp* qp, const ibv_send_wr& request) {
  ibv_send_wr copy = request;
  copy.wr_id = kNobodys;
  ibv_send_wr* bad = nullptr;
  return damager().ops.post_send(qp, &copy, &bad) == 0;
}

ibv_qp* another_than(const ibv_qp* qp) {
  for (const auto& [number, other] : damager().queue_pairs) {
    if (other != qp) {
      return other;
    }
  }
  return nullptr;
}

/// The words that perf sends, behind WRITEs to say how many came before, and as credits.
constexpr uint32_t kWordBytes = 16;

/// A word behind WRITEs that is sent from where one of the 63 before it lies, which may not have left yet.
bool reuses_words(ibv_qp* qp, const ibv_send_wr& request) {
  constexpr size_t kWordsApart = 63;
  auto& words = damager().words;
  if (request.opcode == IBV_WR_RDMA_WRITE) {
    words[qp->qp_num];
  }
  const auto of_writer = words.find(qp->qp_num);
  if (request.opcode != IBV_WR_SEND || of_writer == words.end() || request.num_sge != 1) {
    return false;
  }
  std::deque<uint64_t>& last = of_writer->second;
  const uint64_t at = request.sg_list[0].addr;
  const bool is_reused = std::find(last.begin(), last.end(), at) != last.end();
  last.push_back(at);
  if (last.size() > kWordsApart) {
    last.pop_front();
  }
  return is_reused;
}

void note_send(ibv_qp* qp, const ibv_send_wr& request) {
  Damager& all = damager();
  all.queue_pairs[qp->qp_num] = qp;
  if (request.num_sge != 1) {
    return;
  }
  const bool is_read = request.opcode == IBV_WR_RDMA_READ;
  const bool is_atomic = request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  const uint64_t remote = is_read ? request.wr.rdma.remote_addr : is_atomic ? request.wr.atomic.remote_addr : 0;
  all.sends[{qp->qp_num, request.wr_id}] = {
      reinterpret_cast<std::byte*>(request.sg_list[0].addr), request.sg_list[0].length, {}, request.opcode, remote};
  if (is_read || is_atomic) {
    const auto [lowest, is_new] = all.lowest.emplace(qp->qp_num, remote);
    lowest->second = std::min(lowest->second, remote);
  }
}

int post_send(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad) {
  Damager& all = damager();
  note_send(qp, *request);
  if (reuses_words(qp, *request) && all.kind == "words") {
    return EFAULT;
  }
  const bool is_write = request->opcode == IBV_WR_RDMA_WRITE || request->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  const bool is_dropped = request->opcode == IBV_WR_SEND && all.hits("drop");
  const bool goes_nowhere = is_write && (all.kind == "nowhere-all" || all.hits("nowhere"));
  if (is_dropped || goes_nowhere) {
    make_up_completion(qp, *request);
    return 0;
  }
  if (is_write && all.hits("misplaced")) {
    request->wr.rdma.remote_addr += 8;
  }
  if (request->opcode == IBV_WR_SEND && all.hits("double")) {
    (void)post_unseen(qp, *request);
  }
  ibv_qp* const other = another_than(qp);
  if (request->opcode == IBV_WR_SEND && other != nullptr && all.is_due("misroute") && post_unseen(other, *request)) {
    all.has_struck = true;
    make_up_completion(qp, *request);
    return 0;
  }
  const int error = all.ops.post_send(qp, request, bad);
  all.posted[qp->qp_num] += error == 0 ? 1 : 0;
  return error;
}

int post_recv(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** bad) {
  Posted one{reinterpret_cast<std::byte*>(request->sg_list[0].addr), request->sg_list[0].length, {}, IBV_WR_SEND, 0};
  one.before.assign(one.at, one.at + one.length);
  damager().receives[{qp->qp_num, request->wr_id}] = std::move(one);
  return damager().ops.post_recv(qp, request, bad);
}

/// 8 bytes, each of which is another one afterwards.
void write_over(std::byte* at) {
  std::for_each(at, at + 8, [](std::byte& one) { one ^= std::byte{0x11}; });
}

/// Until the thread sleeps for a while, as verify does once it has found data missing; however long it was kept from
/// looking.
void await_sleep(pid_t thread) {
  const std::string path = "/proc/self/task/" + std::to_string(thread) + "/syscall";
  for (int looks = 0; looks < 20'000; ++looks) {
    long call = -1;
    if (std::ifstream(path) >> call && (call == SYS_nanosleep || call == SYS_clock_nanosleep)) {
      return;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));  // no event tells that another thread sleeps
  }
  std::fputs("damaging_verbs: the thread that looks for data has not slept within 4 s\n", stderr);
}

void damage_receive(ibv_cq* cq, ibv_wc& one) {
  Damager& all = damager();
  Posted& posted = all.receives[{one.qp_num, one.wr_id}];
  const size_t length = std::min<size_t>(one.byte_len, posted.length);
  if (length >= 24 && all.hits("flip")) {
    posted.at[length - 7] ^= std::byte{4};
  } else if (length >= 24 && all.hits("truncate")) {
    one.byte_len -= 8;
  } else if (all.hits("beyond")) {
    write_over(posted.at + posted.length);
  } else if (all.hits("before")) {
    write_over(posted.at - 8);
  } else if (length >= 24 && (all.hits("late") || all.hits("never"))) {
    Bytes data(posted.at, posted.at + length);
    std::memcpy(posted.at, posted.before.data(), length);
    if (all.kind == "late") {
      std::thread([at = posted.at, data = std::move(data), program = gettid()] {
        await_sleep(program);
        std::memcpy(at, data.data(), data.size());
      }).detach();
    }
  } else if (all.kind == "stale") {
    Bytes& last = all.last[one.qp_num];
    if (last.size() >= 24 && length >= 24 && last.size() != length && all.hits("stale")) {
      std::memcpy(posted.at, last.data(), std::min(last.size(), length));
    } else {
      last.assign(posted.at, posted.at + length);
    }
  } else if (all.kind == "ghost") {
    if (all.first.empty() && length >= 24) {
      all.first.assign(posted.at, posted.at + length);
    } else if (!all.first.empty() && all.first.size() <= posted.length && all.hits("ghost")) {
      std::memcpy(posted.at, all.first.data(), all.first.size());
      one.byte_len = static_cast<uint32_t>(all.first.size());
    }
  } else if (all.hits("other-kind")) {
    one.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
  } else if (all.hits("unposted")) {
    all.extra.emplace_back(cq, one);
    all.extra.back().second.wr_id = kNobodys;
  } else if (all.hits("unposted-slot")) {  // of the first queue pair, as perf and verify number what they post
    all.extra.emplace_back(cq, one);
    all.extra.back().second.wr_id = UINT32_MAX;
  } else if (length == kWordBytes && all.words.empty() && all.hits("word-high")) {
    posted.at[kWordBytes - 1] ^= std::byte{0x40};
  } else if (all.hits("stall")) {
    all.is_stalled = true;
  }
}

void damage_sent(ibv_cq* cq, ibv_wc& one) {
  Damager& all = damager();
  const Posted posted = all.sends[{one.qp_num, one.wr_id}];
  if (posted.opcode == IBV_WR_RDMA_READ && posted.length >= 24 && all.hits("flip-read")) {
    posted.at[17] ^= std::byte{4};
  }
  if (posted.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD && all.hits("atomic")) {
    *posted.at ^= std::byte{1};
  }
  // What lies lowest in the memory that `verify read` reads is a count that goes on.
  const bool is_count =
      posted.opcode == IBV_WR_RDMA_READ && posted.length == 8 && posted.remote == all.lowest[one.qp_num];
  if (is_count && all.hits("count-back")) {
    std::memset(posted.at, 0, 8);
  } else if (is_count && all.hits("count-ahead")) {
    posted.at[6] ^= std::byte{1};
  } else if (all.hits("fail")) {
    one.status = IBV_WC_RETRY_EXC_ERR;
  } else if (all.hits("again")) {
    all.extra.emplace_back(cq, one);
  }
}

/// Two completions of one queue pair that come together, one right behind the other or not.
void damage_pair(ibv_wc& first, ibv_wc& second, bool are_neighbours) {
  Damager& all = damager();
  if ((first.opcode & second.opcode & IBV_WC_RECV) != 0) {
    if (are_neighbours && all.hits("swap")) {
      std::swap(first, second);
    }
    return;
  }
  const Posted one = all.sends[{first.qp_num, first.wr_id}];
  const Posted other = all.sends[{second.qp_num, second.wr_id}];
  // What lies lowest in the memory of `verify atomic` is the cell that all add to.
  const bool is_sum = one.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD && other.opcode == one.opcode &&
                      one.remote == all.lowest[first.qp_num] && other.remote == one.remote;
  if (is_sum && all.hits("atomic-order")) {
    std::swap_ranges(one.at, one.at + 8, other.at);
  }
}

int poll_cq(ibv_cq* cq, int most, ibv_wc* completions) {
  Damager& all = damager();
  if (all.is_stalled) {
    return 0;
  }
  if (!all.extra.empty() && all.extra.front().first == cq && most > 0) {
    *completions = all.extra.front().second;
    all.extra.pop_front();
    return 1;
  }
  for (auto& [number, one] : all.made_up) {
    if (one.cq == cq && all.completed[number] >= one.after && most > 0) {
      *completions = one.completion;
      std::deque<ibv_wc>& waiting = all.waiting[number];
      if (waiting.empty()) {
        all.made_up.erase(number);
      } else {
        one.completion = waiting.front();
        waiting.pop_front();
      }
      return 1;
    }
  }
  // One at a time while a made up one has to be put in between.
  const int count = all.ops.poll_cq(cq, all.made_up.empty() ? most : 1, completions);
  int kept = 0;
  for (int i = 0; i < count; ++i) {
    ibv_wc& one = completions[i];
    if ((one.opcode & IBV_WC_RECV) != 0) {
      damage_receive(cq, one);
    } else if (one.wr_id == kNobodys) {
      continue;
    } else {
      ++all.completed[one.qp_num];
      damage_sent(cq, one);
    }
    completions[kept++] = one;
  }
  for (int i = 0; i < kept; ++i) {
    for (int k = i + 1; k < kept; ++k) {
      if (completions[i].qp_num == completions[k].qp_num) {
        damage_pair(completions[i], completions[k], k == i + 1);
      }
    }
  }
  return kept;
}

}  // namespace

EXPORTED ibv_context* ibv_open_device(ibv_device* device) {
  ibv_context* context = real("ibv_open_device", &ibv_open_device)(device);
  if (context != nullptr) {
    damager().ops = context->ops;
    context->ops.post_send = post_send;
    context->ops.post_recv = post_recv;
    context->ops.poll_cq = poll_cq;
  }
  return context;
}

EXPORTED int ibv_destroy_qp(ibv_qp* qp) {
  if (damager().kind == "leak") {
    return 0;
  }
  return real("ibv_destroy_qp", &ibv_destroy_qp)(qp);
}

// The header has macros of these names.
#undef ibv_query_port
#undef ibv_reg_mr

#define PASS_ON(result, name, parameters, arguments)                             \
  EXPORTED result name parameters {                                              \
    using Function = result(*) parameters;                                       \
    return reinterpret_cast<Function>(::dlsym(damager().real, #name)) arguments; \
  }

PASS_ON(ibv_device**, ibv_get_device_list, (int* count), (count))
PASS_ON(void, ibv_free_device_list, (ibv_device * *list), (list))
PASS_ON(const char*, ibv_get_device_name, (ibv_device * device), (device))
PASS_ON(int, ibv_query_device, (ibv_context * context, ibv_device_attr* all), (context, all))
PASS_ON(int, ibv_close_device, (ibv_context * context), (context))
PASS_ON(ibv_pd*, ibv_alloc_pd, (ibv_context * context), (context))
PASS_ON(int, ibv_dealloc_pd, (ibv_pd * pd), (pd))
PASS_ON(ibv_mr*, ibv_reg_mr, (ibv_pd * pd, void* at, size_t length, int access), (pd, at, length, access))
PASS_ON(int, ibv_dereg_mr, (ibv_mr * region), (region))
PASS_ON(ibv_comp_channel*, ibv_create_comp_channel, (ibv_context * context), (context))
PASS_ON(int, ibv_destroy_comp_channel, (ibv_comp_channel * channel), (channel))
PASS_ON(int, ibv_get_cq_event, (ibv_comp_channel * channel, ibv_cq** cq, void** own), (channel, cq, own))
PASS_ON(void, ibv_ack_cq_events, (ibv_cq * cq, unsigned count), (cq, count))
PASS_ON(ibv_ah*, ibv_create_ah, (ibv_pd * pd, ibv_ah_attr* path), (pd, path))
PASS_ON(int, ibv_destroy_ah, (ibv_ah * handle), (handle))
// A completion that the program knows nothing of takes an entry, too: without one for it the queue would overrun.
PASS_ON(ibv_cq*, ibv_create_cq, (ibv_context * context, int entries, void* own, ibv_comp_channel* channel, int vector),
        (context, entries + (damager().kind == "double" ? 1 : 0), own, channel, vector))
PASS_ON(int, ibv_destroy_cq, (ibv_cq * cq), (cq))
PASS_ON(ibv_qp*, ibv_create_qp, (ibv_pd * pd, ibv_qp_init_attr* wanted), (pd, wanted))
PASS_ON(int, ibv_modify_qp, (ibv_qp * qp, ibv_qp_attr* all, int mask), (qp, all, mask))
PASS_ON(int, ibv_query_port, (ibv_context * context, uint8_t port, _compat_ibv_port_attr* all), (context, port, all))
PASS_ON(int, ibv_query_gid, (ibv_context * context, uint8_t port, int index, ibv_gid* gid), (context, port, index, gid))
PASS_ON(const char*, ibv_wc_status_str, (ibv_wc_status status), (status))
