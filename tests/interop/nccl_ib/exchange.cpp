// Drives NCCL's IB transport as NCCL's proxy does, from one process to another, without a GPU:
//
//   nccl_ib receive [--until-error]           prints "handle HEX" and "device NAME", then receives
//   nccl_ib send HEX [--until-error]
//
// Both know what is sent: messages of each size, eight in flight, bytes that depend on their number and place. Prints
// "ok ..." at the end. With --until-error data flows until the transport gives it up ("error CODE CALL") or SIGTERM
// comes ("aborted"), as the abort of a communicator does to those ends that have nothing under way and so notice
// nothing; then it is closed with its requests in flight. Exit status: 0, 3 after such an error, 4 after such an end, 1
// for what is wrong.
#include <sched.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "nccl_net.h"

extern ncclNet_t ncclNetIb;
void ncclDebugLog(ncclDebugLogLevel level, unsigned long flags, const char* file, int line, const char* format, ...);

namespace {

constexpr std::size_t kSizes[] = {0, 1, 8, 127, 128, 129, 4096, 65537, 524288, std::size_t{4} << 20};
constexpr std::uint64_t kRounds = 24;   // messages of each size
constexpr std::uint64_t kInFlight = 8;  // NCCL_STEPS
constexpr std::size_t kEndlessSize = 65536;
constexpr std::size_t kSlot = (std::size_t{4} << 20) + 4096;
constexpr std::size_t kSpare = 64;  // a receive is posted larger than what comes, and the rest must stay as it was
constexpr unsigned char kUntouched = 0xA5;
constexpr int kTag = 7;
constexpr auto kPatience = std::chrono::seconds(60);

struct Failed {
  ncclResult_t code;
  const char* call;
};

struct Aborted {};

volatile std::sig_atomic_t abort_was_asked = 0;

[[noreturn]] void give_up(const std::string& why) {
  std::printf("wrong: %s\n", why.c_str());
  std::exit(1);
}

void check(ncclResult_t code, const char* call) {
  if (code != ncclSuccess) throw Failed{code, call};
}

/// Calls `attempt` until it is true. What never gets there is a bug, and says so.
template <typename Attempt>
void until(const char* what, Attempt attempt) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!attempt()) {
    if (abort_was_asked != 0) throw Aborted{};
    if (std::chrono::steady_clock::now() > deadline) give_up(std::string("no progress: ") + what);
    ::sched_yield();
  }
}

unsigned char byte_of(std::uint64_t number, std::size_t place) {
  return static_cast<unsigned char>(place * 7 + (place >> 8) * 13 + number * 31);
}

struct Plan {
  bool is_endless;
  std::uint64_t count() const { return is_endless ? UINT64_MAX : kRounds * std::size(kSizes); }
  std::size_t size(std::uint64_t number) const { return is_endless ? kEndlessSize : kSizes[number / kRounds]; }
};

/// One end of a connection with its memory, a slot for each message in flight.
struct End {
  void* comm = nullptr;
  void* region = nullptr;
  std::vector<unsigned char> memory = std::vector<unsigned char>(kSlot * kInFlight);
  std::array<void*, kInFlight> requests{};

  unsigned char* slot(std::uint64_t number) { return memory.data() + number % kInFlight * kSlot; }
  void register_memory() {
    check(ncclNetIb.regMr(comm, memory.data(), memory.size(), NCCL_PTR_HOST, &region), "regMr");
  }

  /// Whether the request of a message is done; `size`: how much came.
  bool is_done(std::uint64_t number, int* size) {
    int done = 0;
    check(ncclNetIb.test(requests[number % kInFlight], &done, size), "test");
    return done != 0;
  }

  void flush(std::uint64_t number, int size) {
    void* data = slot(number);
    void* request = nullptr;
    check(ncclNetIb.iflush(comm, 1, &data, &size, &region, &request), "iflush");
    if (request == nullptr) return;  // nothing of a GPU's memory is in the way
    until("iflush", [&] {
      int done = 0;
      check(ncclNetIb.test(request, &done, nullptr), "test of iflush");
      return done != 0;
    });
  }
};

void compare(End& end, const Plan& plan, std::uint64_t number, int came) {
  const std::size_t size = plan.size(number);
  const std::string which = "message " + std::to_string(number) + " of " + std::to_string(size) + " bytes";
  if (static_cast<std::size_t>(came) != size) give_up(which + ": " + std::to_string(came) + " came");
  for (std::size_t place = 0; place < size + kSpare; ++place) {
    const unsigned char wanted = place < size ? byte_of(number, place) : kUntouched;
    if (end.slot(number)[place] != wanted) give_up(which + ": byte " + std::to_string(place) + " differs");
  }
}

/// Keeps messages in flight: `post` starts one and says whether it could, `finish` looks whether the oldest is done.
template <typename Post, typename Finish>
void pump(const Plan& plan, Post post, Finish finish) {
  std::uint64_t posted = 0;
  for (std::uint64_t done = 0; done < plan.count(); ++done) {
    until("a message", [&] {
      while (posted < plan.count() && posted - done < kInFlight && post(posted)) ++posted;
      return posted > done && finish(done);
    });
    if (plan.is_endless && done == 100) {
      std::puts("running");
    }
  }
}

void send_all(End& end, const Plan& plan) {
  const auto post = [&](std::uint64_t number) {
    const std::size_t size = plan.size(number);
    for (std::size_t place = 0; place < size; ++place) end.slot(number)[place] = byte_of(number, place);
    void*& request = end.requests[number % kInFlight];
    check(ncclNetIb.isend(end.comm, end.slot(number), size, kTag, end.region, nullptr, &request), "isend");
    return request != nullptr;  // nullptr: the other end has posted no receive yet
  };
  pump(plan, post, [&](std::uint64_t number) { return end.is_done(number, nullptr); });
}

void receive_all(End& end, const Plan& plan) {
  const auto post = [&](std::uint64_t number) {
    void* data = end.slot(number);
    std::size_t size = plan.size(number) + kSpare;
    int tag = kTag;
    void* profiler = nullptr;
    void*& request = end.requests[number % kInFlight];
    request = nullptr;
    std::memset(data, kUntouched, size);
    check(ncclNetIb.irecv(end.comm, 1, &data, &size, &tag, &end.region, &profiler, &request), "irecv");
    return request != nullptr;
  };
  pump(plan, post, [&](std::uint64_t number) {
    int size = -1;
    if (!end.is_done(number, &size)) return false;
    end.flush(number, size);
    compare(end, plan, number, size);
    return true;
  });
}

std::string in_hex(const unsigned char* bytes, std::size_t count) {
  std::string text;
  char pair[3];
  for (std::size_t i = 0; i < count; ++i) {
    std::snprintf(pair, sizeof(pair), "%02x", bytes[i]);
    text += pair;
  }
  return text;
}

void from_hex(const std::string& text, unsigned char* bytes, std::size_t count) {
  if (text.size() != 2 * count) give_up("the handle has " + std::to_string(text.size()) + " digits");
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<unsigned char>(std::stoul(text.substr(2 * i, 2), nullptr, 16));
}

void accept_one(End& end, void* context) {
  unsigned char handle[NCCL_NET_HANDLE_MAXSIZE] = {};
  void* listener = nullptr;
  ncclNetDeviceHandle_t* device_handle = nullptr;
  check(ncclNetIb.listen(context, 0, handle, &listener), "listen");
  std::printf("handle %s\n", in_hex(handle, sizeof(handle)).c_str());
  until("accept", [&] {
    check(ncclNetIb.accept(listener, &end.comm, &device_handle), "accept");
    return end.comm != nullptr;
  });
  check(ncclNetIb.closeListen(listener), "closeListen");
}

void connect_to(End& end, void* context, const std::string& text) {
  alignas(8) unsigned char handle[NCCL_NET_HANDLE_MAXSIZE];  // the transport keeps its state in it between the calls
  ncclNetDeviceHandle_t* device_handle = nullptr;
  from_hex(text, handle, sizeof(handle));
  until("connect", [&] {
    check(ncclNetIb.connect(context, 0, handle, &end.comm, &device_handle), "connect");
    return end.comm != nullptr;
  });
}

int run(bool is_sender, const std::string& handle, const Plan& plan) {
  void* context = nullptr;
  ncclNetCommConfig_t config{};
  config.trafficClass = NCCL_NET_TRAFFIC_CLASS_UNDEF;
  check(ncclNetIb.init(&context, 0, &config, ncclDebugLog, nullptr), "init");
  int devices = 0;
  check(ncclNetIb.devices(&devices), "devices");
  if (devices < 1) give_up("no device");
  ncclNetProperties_t properties{};
  check(ncclNetIb.getProperties(0, &properties), "getProperties");
  std::printf("device %s, %d Mb/s, %d in all\n", properties.name, properties.speed, devices);

  End end;
  is_sender ? connect_to(end, context, handle) : accept_one(end, context);
  int status = 0;
  try {
    end.register_memory();
    is_sender ? send_all(end, plan) : receive_all(end, plan);
    std::printf("ok %llu messages\n", static_cast<unsigned long long>(plan.count()));
  } catch (const Failed& failed) {
    if (!plan.is_endless) throw;
    std::printf("error %d %s\n", static_cast<int>(failed.code), failed.call);
    status = 3;
  } catch (const Aborted&) {
    std::puts("aborted");
    status = 4;
  }
  check(ncclNetIb.deregMr(end.comm, end.region), "deregMr");
  check(is_sender ? ncclNetIb.closeSend(end.comm) : ncclNetIb.closeRecv(end.comm), "close");
  check(ncclNetIb.finalize(context), "finalize");
  std::puts("closed");
  return status;
}

}  // namespace

int main(int count, char** words) {
  const std::string_view role = count > 1 ? words[1] : "";
  const bool is_sender = role == "send";
  const int options = is_sender ? 3 : 2;
  if ((!is_sender && role != "receive") || count < options) {
    std::fputs("usage: nccl_ib receive [--until-error] | nccl_ib send HANDLE [--until-error]\n", stderr);
    return 2;
  }
  const Plan plan{count > options && std::string_view(words[options]) == "--until-error"};
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // read while it runs
  if (plan.is_endless) std::signal(SIGTERM, [](int) { abort_was_asked = 1; });
  try {
    return run(is_sender, is_sender ? words[2] : "", plan);
  } catch (const Failed& failed) {
    give_up(std::string(failed.call) + " gives " + std::to_string(static_cast<int>(failed.code)));
  }
}
