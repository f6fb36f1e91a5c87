// Hot path: isend(), irecv() and test().
#include "nccl/net.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/lock_guard.h"
#include "base/mutex.h"
#include "circuit/endpoint.h"
#include "circuit/settings.h"
#include "nccl/pending.h"

namespace ringbolt::nccl {
namespace {

using circuit::Endpoint;
using circuit::FailureKind;

constexpr int kWarn = 2;
constexpr int kInfo = 3;
// NCCL_INIT and NCCL_NET of ncclDebugLogSubSys.
constexpr unsigned long kInitAndNet = 0x11;

// NCCL's own function, which stays as long as its library is loaded.
std::atomic<Logger> logger_in_use = nullptr;

void say(int level, const std::string& text) {
  if (const Logger logger = logger_in_use.load()) {
    logger(level, kInitAndNet, "ringbolt", 0, "NET/Ringbolt: %s", text.c_str());
  }
}

/// What listen, connect and accept make. Their addresses are what NCCL knows.
struct ListenComm {
  std::shared_ptr<Endpoint> endpoint;
  uint64_t listener = 0;
};
// Owned by NCCL from its making to close_...(): raw pointers across the border. `kind` is what test() tells them
// apart by, before any cast. has_said_failure: of the thread that makes data calls.
struct Comm {
  enum class Kind : uint8_t { send, receive };
  Kind kind;
  std::shared_ptr<Endpoint> endpoint;
  bool has_said_failure = false;
};
struct SendComm : Comm {
  std::shared_ptr<circuit::Outgoing> outgoing;
  std::shared_ptr<circuit::SendCircuit> circuit;
};
struct ReceiveComm : Comm {
  std::shared_ptr<circuit::Incoming> incoming;
};
/// Memory of NCCL's that data calls name. `registered` is null where messages go by frames, which need no device to
/// know of the memory.
// Owned by NCCL from regMr to deregMr. Holds the cache, which an endpoint's end does not take away.
struct Registration {
  std::shared_ptr<circuit::Registrations> registrations;
  const circuit::Registered* registered = nullptr;
};
const circuit::Registered* registered_of(void* registration) {
  return registration == nullptr ? nullptr : static_cast<const Registration*>(registration)->registered;
}

/// All of this process: NCCL knows the plugin by its tables, which have no room for a pointer of ours.
// Names and path are written once and never changed, since NCCL keeps pointers into them.
struct Process {
  base::Mutex lock;
  std::shared_ptr<Endpoint> endpoint RINGBOLT_GUARDED_BY(lock);
  uint32_t n_contexts RINGBOLT_GUARDED_BY(lock) = 0;  ///< init() without finalize()
  uint32_t n_comms RINGBOLT_GUARDED_BY(lock) = 0;     ///< of all kinds
  std::string name RINGBOLT_GUARDED_BY(lock);
  std::string pci_path RINGBOLT_GUARDED_BY(lock);
  uint64_t guid RINGBOLT_GUARDED_BY(lock) = 0;
};
/// Never destroyed: threads of NCCL's may still be here when the process ends.
Process& process() {
  static Process* const one = new Process();
  return *one;
}

/// Where the device lies in the machine's tree of buses; empty: nowhere, as a software device.
std::string pci_path_of(const std::string& device) {
  std::array<char, PATH_MAX> resolved{};
  const std::string link = "/sys/class/infiniband/" + device + "/device";
  return ::realpath(link.c_str(), resolved.data()) == nullptr ? "" : resolved.data();
}

/// The endpoint goes with the last context and comm: its threads end, and connections with others close.
std::shared_ptr<Endpoint> take_if_unused(Process& all) RINGBOLT_REQUIRES(all.lock) {
  // Handed to the caller, who lets go of it without the lock: its destructor waits for threads.
  return all.n_contexts == 0 && all.n_comms == 0 ? std::exchange(all.endpoint, nullptr) : nullptr;
}

void note_comm(int change) {
  Process& all = process();
  std::shared_ptr<Endpoint> unused;  // goes without the lock
  {
    const base::LockGuard guard(all.lock);
    all.n_comms = static_cast<uint32_t>(static_cast<int>(all.n_comms) + change);
    unused = take_if_unused(all);
  }
}

/// No exception crosses the border to NCCL.
template <class Call>
Result guarded(const char* what, Call call) noexcept try {
  try {
    return call();
  } catch (const std::exception& error) {
    warn(fmt::format("{}: {}", what, error.what()));
  }
  return Result::system_error;
} catch (...) {  // of somebody else's, or no memory for words
  return Result::system_error;
}

Result result_of(FailureKind kind) {
  switch (kind) {
    case FailureKind::none:
      return Result::success;
    // The peer may live: a cable is missing, and NCCL's remote error would send people to the wrong machine.
    case FailureKind::no_way:
      return Result::system_error;
    case FailureKind::protocol:
      return Result::internal_error;
    case FailureKind::usage:
      return Result::invalid_usage;
    case FailureKind::peer:
      return Result::remote_error;
  }
  return Result::internal_error;
}

/// Says it once for each comm: NCCL passes on the number alone.
[[gnu::noinline, gnu::cold]] Result failed(Comm& comm, const circuit::Circuit& circuit) {
  if (!std::exchange(comm.has_said_failure, true)) {
    warn(circuit.failure_text());
  }
  return result_of(circuit.failure());
}

void give_up(const std::shared_ptr<circuit::Outgoing>& outgoing, Endpoint& endpoint) {
  // Before close(): nobody finds it any more by the handle's ticket.
  endpoint.hand_over(outgoing->id());
  outgoing->close();
  endpoint.wake();
}

Result begin(Process& all) RINGBOLT_REQUIRES(all.lock) {
  if (all.endpoint) {
    return Result::success;
  }
  const circuit::Settings settings = circuit::settings_from_process();
  for (const std::string& remark : settings.remarks) {
    warn(remark);
  }
  all.endpoint = std::make_shared<Endpoint>(settings.plan, [](circuit::Level level, const std::string& text) {
    say(level == circuit::Level::warning ? kWarn : kInfo, text);
  });
  std::string ports;
  for (const bringup::PortCard& card : all.endpoint->ports()) {
    ports += fmt::format("{}{} ({} Gb/s)", ports.empty() ? "" : ", ", card.device, card.rate_mbps / 1000);
  }
  // As a warning, since NCCL shows these by default: which ports are used is what people ask first.
  warn(fmt::format("{} has {}", settings.plan.name, ports));
  // Pointers to these are NCCL's for the life of the process.
  if (all.name.empty()) {
    all.name = "ringbolt";
    all.pci_path = pci_path_of(all.endpoint->ports().front().device);
  }
  all.guid = settings.plan.node;
  return Result::success;
}

}  // namespace

void warn(const std::string& text) noexcept { say(kWarn, text); }

Result init(void** context, uint64_t, Logger logger) noexcept {
  logger_in_use = logger;
  return guarded("this plugin withdraws, and NCCL goes on without it", [&] {
    Process& all = process();
    const base::LockGuard guard(all.lock);
    const Result result = begin(all);
    // After begin(), which throws where there is no port: NCCL does not finalize what it could not init.
    ++all.n_contexts;
    if (context != nullptr) {
      *context = &all;
    }
    return result;
  });
}

Result finalize(void* context) noexcept {
  // Of a table up to v10: never counted as ended, so the endpoint stays.
  if (context == nullptr) {
    return Result::success;
  }
  return guarded("finalize", [&] {
    Process& all = process();
    std::shared_ptr<Endpoint> unused;
    {
      const base::LockGuard guard(all.lock);
      all.n_contexts -= std::min(all.n_contexts, 1U);
      unused = take_if_unused(all);
    }
    return Result::success;
  });
}

Result devices(int* n) noexcept {
  // Links follow from the peer and not from the device: one for all of them.
  *n = 1;
  return Result::success;
}

Result properties(int device, Properties& properties) noexcept {
  Process& all = process();
  const base::LockGuard guard(all.lock);
  if (device != 0 || !all.endpoint) {
    return Result::invalid_argument;
  }
  properties = {};
  properties.name = all.name.c_str();
  properties.pci_path = all.pci_path.empty() ? nullptr : all.pci_path.c_str();
  properties.guid = all.guid;
  uint64_t speed = 0;
  for (const bringup::PortCard& card : all.endpoint->ports()) {
    speed += card.rate_mbps;
  }
  properties.speed_mbps = static_cast<int>(std::min<uint64_t>(speed, INT_MAX));
  return Result::success;
}

Result listen(void*, int device, void* handle, void** listen_comm) noexcept {
  return guarded("listen", [&] {
    Process& all = process();
    std::shared_ptr<Endpoint> endpoint;
    {
      const base::LockGuard guard(all.lock);
      endpoint = all.endpoint;
    }
    if (device != 0 || !endpoint) {
      return Result::invalid_argument;
    }
    // NCCL hands over as many bytes as NCCL_NET_HANDLE_MAXSIZE says, without a length.
    static_assert(kHandleBytes == circuit::kHandleBytes);
    auto comm = std::make_unique<ListenComm>();
    comm->listener =
        endpoint->listen(std::span<std::byte, kHandleBytes>(static_cast<std::byte*>(handle), kHandleBytes));
    comm->endpoint = std::move(endpoint);
    note_comm(1);
    *listen_comm = comm.release();
    return Result::success;
  });
}

Result connect(void*, int device, void* handle, void** send_comm) noexcept {
  *send_comm = nullptr;
  return guarded("connect", [&] {
    Process& all = process();
    std::shared_ptr<Endpoint> endpoint;
    {
      const base::LockGuard guard(all.lock);
      endpoint = all.endpoint;
    }
    if (device != 0 || !endpoint) {
      return Result::invalid_argument;
    }
    const auto outgoing =
        endpoint->connect(std::span<std::byte, kHandleBytes>(static_cast<std::byte*>(handle), kHandleBytes));
    if (!outgoing) {
      warn("connect: the handle is none of this plugin's, or of another version of it: all ranks need the same");
      return Result::internal_error;
    }
    if (outgoing->is_refused()) {
      warn("connect: " + outgoing->failure_text());
      give_up(outgoing, *endpoint);
      return Result::remote_error;
    }
    if (auto circuit = outgoing->ready()) {
      auto comm = std::make_unique<SendComm>();
      comm->kind = Comm::Kind::send;
      comm->outgoing = outgoing;
      comm->circuit = std::move(circuit);
      comm->endpoint = endpoint;
      note_comm(1);
      endpoint->hand_over(outgoing->id());
      *send_comm = comm.release();
    }
    return Result::success;
  });
}

Result accept(void* listen_comm, void** receive_comm) noexcept {
  *receive_comm = nullptr;
  return guarded("accept", [&] {
    const auto& listening = *static_cast<ListenComm*>(listen_comm);
    if (auto incoming = listening.endpoint->accept(listening.listener)) {
      auto comm = std::make_unique<ReceiveComm>();
      comm->kind = Comm::Kind::receive;
      comm->incoming = std::move(incoming);
      comm->endpoint = listening.endpoint;
      note_comm(1);
      *receive_comm = comm.release();
    }
    return Result::success;
  });
}

/// For the devices of all comms: any part of what is known already costs nothing, so that it may be asked of any comm.
/// What a device refuses goes by frames, which are copied from and to the memory and need no registration.
Result register_memory(void* comm, void* data, size_t size, int type, void** registration) noexcept {
  return guarded("regMr", [&] {
    if (type != kHostMemory || data == nullptr) {
      warn(fmt::format("regMr: {} bytes at {} of memory type {}: this plugin takes host memory (type {}) alone", size,
                       data, type, kHostMemory));
      return Result::invalid_argument;
    }
    auto made = std::make_unique<Registration>();
    made->registrations = static_cast<Comm*>(comm)->endpoint->registrations();
    if (made->registrations) {
      made->registered = made->registrations->add(data, size);
    }
    *registration = made.release();
    return Result::success;
  });
}

Result deregister_memory(void*, void* registration) noexcept {
  return guarded("deregMr", [&] {
    const std::unique_ptr<Registration> its(static_cast<Registration*>(registration));
    if (its && its->registered != nullptr) {
      its->registrations->remove(its->registered);
    }
    return Result::success;
  });
}

Result isend(void* comm, void* data, size_t size, int tag, void* registration, void** request) noexcept {
  auto& its = *static_cast<SendComm*>(comm);
  circuit::SendCircuit& circuit = *its.circuit;
  *request = nullptr;
  if (circuit.failure() != FailureKind::none) [[unlikely]] {
    return failed(its, circuit);
  }
  if (!circuit.lock.try_lock()) {
    return Result::success;  // the endpoint's thread may be off its processor with it; NCCL asks again
  }
  const base::LockGuard guard(circuit.lock, base::kAdoptLock);
  if (circuit::Send* const send = circuit.post(data, size, tag, registered_of(registration))) {
    send->user = &its;
    *request = static_cast<circuit::Request*>(send);
    // A short message is copied and done by now, in most cases.
    if (!send->is_done && !circuit.is_kept) {
      pending_of_this_thread().keep(its.circuit);
    }
  }
  return Result::success;
}

Result irecv(void* comm, int n, void** data, const size_t* sizes, const int* tags, void** registrations,
             void** request) noexcept {
  auto& its = *static_cast<ReceiveComm*>(comm);
  circuit::ReceiveCircuit& circuit = *its.incoming->circuit();
  *request = nullptr;
  if (n < 1 || n > kMostReceives) [[unlikely]] {
    warn(fmt::format("irecv: {} buffers, where 1 to {} may be given", n, kMostReceives));
    return Result::invalid_usage;
  }
  if (circuit.failure() != FailureKind::none) [[unlikely]] {
    return failed(its, circuit);
  }
  if (!circuit.lock.try_lock()) {
    return Result::success;
  }
  const base::LockGuard guard(circuit.lock, base::kAdoptLock);
  std::array<const circuit::Registered*, kMostReceives> registered;  // the first n are set, if any
  for (int i = 0; i < n && registrations != nullptr; ++i) {
    registered[static_cast<size_t>(i)] = registered_of(registrations[i]);
  }
  const auto* const known = registrations == nullptr ? nullptr : registered.data();
  if (circuit::Receive* const receive = circuit.post(static_cast<uint32_t>(n), data, sizes, tags, known)) {
    receive->user = &its;
    *request = static_cast<circuit::Request*>(receive);
    if (!circuit.is_kept) {
      pending_of_this_thread().keep(its.incoming->circuit());
    }
  }
  return Result::success;
}

namespace {

/// Whether a send is done, and how many bytes it had.
Result test_send(SendComm& comm, circuit::Send& send, int* done, int* sizes) {
  circuit::SendCircuit& circuit = *comm.circuit;
  // Before it is given back: another send may take its place.
  const size_t size = send.size;
  if (!circuit::SendCircuit::take_if_done(send)) {
    if (!circuit.lock.try_lock()) {
      return Result::success;
    }
    const base::LockGuard guard(circuit.lock, base::kAdoptLock);
    if (!circuit.is_done(send)) {
      return circuit.failure() == FailureKind::none ? Result::success : failed(comm, circuit);
    }
  }
  *done = 1;
  if (sizes != nullptr) {
    *sizes = static_cast<int>(size);
  }
  return Result::success;
}

Result test_receive(ReceiveComm& comm, const circuit::Receive& receive, int* done, int* sizes) {
  circuit::ReceiveCircuit& circuit = *comm.incoming->circuit();
  if (!circuit.lock.try_lock()) {
    return Result::success;
  }
  const base::LockGuard guard(circuit.lock, base::kAdoptLock);
  // Under the lock from here to pop(): the endpoint's thread must not see it done and not taken out.
  if (circuit.is_done(receive)) {
    for (uint32_t i = 0; sizes != nullptr && i < receive.n_parts; ++i) {
      sizes[i] = static_cast<int>(receive.parts[i].length);
    }
    circuit.pop();
    *done = 1;
    return Result::success;
  }
  return circuit.failure() == FailureKind::none ? Result::success : failed(comm, circuit);
}

}  // namespace

Result test(void* request, int* done, int* sizes) noexcept {
  auto* const asked = static_cast<circuit::Request*>(request);
  auto& comm = *static_cast<Comm*>(asked->user);
  *done = 0;
  const Result result =
      comm.kind == Comm::Kind::send
          ? test_send(static_cast<SendComm&>(comm), *static_cast<circuit::Send*>(asked), done, sizes)
          : test_receive(static_cast<ReceiveComm&>(comm), *static_cast<circuit::Receive*>(asked), done, sizes);
  if (*done == 0) {
    // Without any circuit's lock held: it tries others'.
    pending_of_this_thread().move_on();
  }
  return result;
}

Result close_send(void* comm) noexcept {
  return guarded("closeSend", [&] {
    const std::unique_ptr<SendComm> its(static_cast<SendComm*>(comm));
    // First: NCCL frees its buffers right after this.
    its->circuit->abandon_soon();
    its->circuit.reset();
    its->outgoing->close();
    its->outgoing.reset();
    its->endpoint->wake();
    its->endpoint.reset();
    // Last: it may end the endpoint, which this thread then waits for.
    note_comm(-1);
    return Result::success;
  });
}

Result close_receive(void* comm) noexcept {
  return guarded("closeRecv", [&] {
    const std::unique_ptr<ReceiveComm> its(static_cast<ReceiveComm*>(comm));
    its->incoming->close();
    its->incoming.reset();
    its->endpoint->wake();
    its->endpoint.reset();
    note_comm(-1);
    return Result::success;
  });
}

Result close_listen(void* listen_comm) noexcept {
  return guarded("closeListen", [&] {
    const std::unique_ptr<ListenComm> its(static_cast<ListenComm*>(listen_comm));
    its->endpoint->close_listener(its->listener);
    its->endpoint.reset();
    note_comm(-1);
    return Result::success;
  });
}

}  // namespace ringbolt::nccl
