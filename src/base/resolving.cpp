#include "base/resolving.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/condition.h"
#include "base/error.h"
#include "base/start_thread.h"

namespace ringbolt::base {
namespace {

using List = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

struct Answer {
  int result = EAI_AGAIN;
  int system_error = 0;
  List list{nullptr, &::freeaddrinfo};
};

// Errors of the look-up stay in the answer: `system_error` counts only with EAI_SYSTEM (getaddrinfo(3)).
Answer ask(const std::string& host, uint16_t port, int flags, const LookUp& look_up) {
  addrinfo hints{};
  // Otherwise each address comes three times, once for each kind of socket.
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* list = nullptr;
  Answer answer;
  answer.result = look_up(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  answer.system_error = errno;
  answer.list.reset(list);
  return answer;
}

/// What the thread that asks and the one that waits share; the last of them removes it.
struct Question {
  Mutex mutex;
  Condition answered;
  std::optional<Answer> answer RINGBOLT_GUARDED_BY(mutex);
};

/// Nothing at the deadline.
std::optional<Answer> ask_until(const std::string& host, uint16_t port, uint64_t deadline_ns, const LookUp& look_up) {
  const auto question = std::make_shared<Question>();
  try {
    // Everything is copied into the thread: the caller may be gone by the time the answer comes. After the process'
    // exit handlers have begun it may be stopped anywhere, which is harmless: it touches nothing but the question.
    start_thread([question, host, port, look_up] {
      Answer answer = ask(host, port, 0, look_up);
      const LockGuard guard(question->mutex);
      question->answer = std::move(answer);
      question->answered.notify_one();
    }).detach();
  } catch (const std::system_error&) {
    return ask(host, port, 0, look_up);  // no thread is to be had: late is better than never
  }
  const LockGuard guard(question->mutex);
  while (!question->answer) {
    const uint64_t now = now_ns();
    if (now >= deadline_ns) {
      return std::nullopt;
    }
    constexpr uint64_t kMostNs = 3'600'000'000'000;  // of what the clock of a wait can be given
    question->answered.wait_for(question->mutex, std::chrono::nanoseconds(std::min(deadline_ns - now, kMostNs)));
  }
  return std::move(question->answer);
}

}  // namespace

Resolved resolve(const std::string& host, uint16_t port, bool must_be_number, uint64_t deadline_ns,
                 const LookUp& look_up) {
  std::optional<Answer> answer = ask(host, port, AI_NUMERICHOST, &::getaddrinfo);
  // A number is answered without a thread, and without a name service.
  if (answer->result == EAI_NONAME && !must_be_number) {
    answer = ask_until(host, port, deadline_ns, look_up);
  }
  Resolved resolved;
  if (!answer) {
    resolved.error = ETIMEDOUT;
    resolved.problem = host + ": the name service does not answer";
    return resolved;
  }
  if (answer->result != 0) {
    const bool is_systems = answer->result == EAI_SYSTEM;
    resolved.error = is_systems ? answer->system_error : EADDRNOTAVAIL;
    resolved.problem =
        fmt::format("{}: {}", host, is_systems ? reason_of(answer->system_error) : ::gai_strerror(answer->result));
    return resolved;
  }
  for (const addrinfo* each = answer->list.get(); each != nullptr; each = each->ai_next) {
    SocketAddress address;
    std::memcpy(&address.bytes, each->ai_addr, each->ai_addrlen);
    address.length = each->ai_addrlen;
    resolved.addresses.push_back(address);
  }
  return resolved;
}

}  // namespace ringbolt::base
