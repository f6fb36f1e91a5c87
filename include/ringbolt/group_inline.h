#pragma once

#include <algorithm>
#include <cerrno>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ringbolt/group.h"

// The definitions of ringbolt/group.h.
namespace ringbolt {
namespace detail {

static_assert(RINGBOLT_COMPLEX64 == static_cast<int>(Type::complex64) &&
              RINGBOLT_AVG == static_cast<int>(Reduction::avg));
static_assert(RINGBOLT_CHECKSUMS_EVERY == static_cast<int>(Checksums::every));

inline Status status_of(int code) { return code == 0 ? Status{} : Status{code, ringbolt_error()}; }

inline void check(int code) {
  if (code != 0) {
    throw Error(code, ringbolt_error());
  }
}

inline ringbolt_call call_of(ringbolt_operation operation, const void* in, void* out, size_t count, Type type,
                             Reduction reduction, uint32_t rank, const CallOptions& options) {
  ringbolt_call call{};
  call.struct_size = sizeof call;
  call.operation = operation;
  call.type = static_cast<ringbolt_type>(type);
  call.reduction = static_cast<ringbolt_reduction>(reduction);
  call.rank = rank;
  call.in = in;
  call.out = out;
  call.count = count;
  call.timeout_ms = options.timeout_ms;
  call.algorithm = options.algorithm.empty() ? nullptr : options.algorithm.c_str();
  call.flags = options.is_reproducible ? 0U : static_cast<uint32_t>(RINGBOLT_ANY_ORDER);
  return call;
}

inline ringbolt_call call_of(ringbolt_operation operation, const void* in, void* out, const std::vector<size_t>& counts,
                             const std::vector<size_t>& received, Type type, const CallOptions& options) {
  ringbolt_call call = call_of(operation, in, out, 0, type, {}, 0, options);
  call.counts = counts.data();
  call.n_counts = counts.size();
  call.received = received.data();
  call.n_received = received.size();
  return call;
}

/// What `write(text, size)` says, which may grow between two questions.
template <class Write>
std::string words_of(Write write) {
  std::string words;
  size_t length = write(nullptr, 0);
  do {
    words.resize(length);
    length = write(words.data(), words.size() + 1);
  } while (length > words.size());
  words.resize(length);
  return words;
}

/// Options as the library takes them.
class Options {
 public:
  explicit Options(const JoinOptions& from);
  ringbolt_options* get() const { return options_.get(); }

 private:
  struct Destroy {
    void operator()(ringbolt_options* options) const { ringbolt_options_destroy(options); }
  };
  void say_environment(const JoinOptions& from);
  std::unique_ptr<ringbolt_options, Destroy> options_;
};

inline Options::Options(const JoinOptions& from) {
  if (from.rank.has_value() != from.size.has_value() || from.size == 0U) {
    throw Error(EINVAL, "JoinOptions: rank and size go together, and size is at least 1");
  }
  ringbolt_options* made = nullptr;
  check(ringbolt_options_create(&made));
  options_.reset(made);
  say_environment(from);
  check(ringbolt_options_set_rank(get(), from.rank.value_or(0), from.size.value_or(0)));
  check(ringbolt_options_set_meeting(get(), from.host.c_str(), from.port));
  check(ringbolt_options_set_bind_address(get(), from.bind_address.c_str()));
  check(ringbolt_options_set_group(get(), from.group.c_str()));
  check(ringbolt_options_set_secret(get(), from.secret.c_str()));
  check(ringbolt_options_set_join_timeout(get(), from.join_timeout_ms));
  check(ringbolt_options_set_timeout(get(), from.timeout_ms));
  check(ringbolt_options_set_verbs(get(), from.verbs.c_str()));
  if (!from.measures_cables) {
    check(ringbolt_options_set_measuring(get(), 0));
  }
  if (!from.has_crc || from.checksums) {
    const Checksums checksums = from.has_crc ? *from.checksums : Checksums::off;
    check(ringbolt_options_set_checksums(get(), static_cast<ringbolt_checksums>(checksums)));
  }
}

inline void Options::say_environment(const JoinOptions& from) {
  if (from.environment.empty() && from.reads_process_environment) {
    return;
  }
  std::vector<std::string> texts;
  for (const auto& [name, value] : from.environment) {
    texts.push_back(name + "=" + value);
  }
  std::vector<const char*> variables;
  for (const std::string& text : texts) {
    variables.push_back(text.c_str());
  }
  variables.push_back(nullptr);
  check(ringbolt_options_set_environment(get(), variables.data()));
}

}  // namespace detail

inline Request::~Request() { give_back(); }

inline Request::Request(Request&& other) noexcept
    : request_(std::exchange(other.request_, nullptr)), ended_(std::exchange(other.ended_, std::nullopt)) {}

inline Request& Request::operator=(Request&& other) noexcept {
  if (this != &other) {
    give_back();
    request_ = std::exchange(other.request_, nullptr);
    ended_ = std::exchange(other.ended_, std::nullopt);
  }
  return *this;
}

inline void Request::give_back() {
  if (request_ != nullptr) {
    cancel();
    (void)ringbolt_wait(std::exchange(request_, nullptr));
  }
}

inline bool Request::is_done() const { return ringbolt_test(request_) != 0; }

inline Status Request::wait() {
  if (request_ != nullptr) {
    ended_ = detail::status_of(ringbolt_wait(std::exchange(request_, nullptr)));
  }
  return ended_.value_or(Status{EINVAL, "this request stands for no call"});
}

inline bool Request::wait_for(uint64_t timeout_ms) {
  return request_ == nullptr || ringbolt_wait_for(request_, timeout_ms) == 1;
}

inline void Request::cancel() {
  if (request_ != nullptr) {
    (void)ringbolt_cancel(request_);
  }
}

/// The program's function, and what it has thrown: that must not pass through the library.
struct Group::ProgramExchange {
  Exchange call;
  std::exception_ptr thrown;

  void rethrow() {
    if (thrown) {
      std::rethrow_exception(std::exchange(thrown, nullptr));
    }
  }
};

inline int Group::exchange(void* context, const void* mine, void* all, size_t length_bytes) {
  auto& program = *static_cast<ProgramExchange*>(context);
  try {
    program.call(mine, all, length_bytes);
    return 0;
  } catch (...) {
    program.thrown = std::current_exception();
    return ECANCELED;
  }
}

inline Group Group::join(const JoinOptions& options) {
  const detail::Options said(options);
  std::shared_ptr<ProgramExchange> exchange_kept;
  if (options.exchange) {
    exchange_kept = std::make_shared<ProgramExchange>(ProgramExchange{options.exchange, {}});
    detail::check(ringbolt_options_set_exchange(said.get(), &Group::exchange, exchange_kept.get()));
  }
  ringbolt_group* group = nullptr;
  const int code = ringbolt_join_with(said.get(), &group);
  return Group(nullptr, exchange_kept).made(code, group);
}

/// Which keeps the same exchange.
inline Group Group::made(int code, ringbolt_group* group) const {
  if (exchange_) {
    exchange_->rethrow();
  }
  detail::check(code);
  return {group, exchange_};
}

inline Status Group::run(const ringbolt_call& call) const {
  return detail::status_of(ringbolt_run(group_.get(), &call));
}

inline Request Group::start(const ringbolt_call& call) const {
  ringbolt_request* request = nullptr;
  const int code = ringbolt_start(group_.get(), &call, &request);
  return code == 0 ? Request(request) : Request(detail::status_of(code));
}

inline Status Group::all_reduce(const void* in, void* out, size_t count, Type type, Reduction reduction,
                                const CallOptions& options) {
  return run(detail::call_of(RINGBOLT_ALL_REDUCE, in, out, count, type, reduction, 0, options));
}

inline Status Group::reduce_scatter(const void* in, void* out, size_t count, Type type, Reduction reduction,
                                    const CallOptions& options) {
  return run(detail::call_of(RINGBOLT_REDUCE_SCATTER, in, out, count, type, reduction, 0, options));
}

inline Status Group::all_gather(const void* in, void* out, size_t count, Type type, const CallOptions& options) {
  return run(detail::call_of(RINGBOLT_ALL_GATHER, in, out, count, type, {}, 0, options));
}

inline Status Group::all_gatherv(const void* in, void* out, const std::vector<size_t>& counts, Type type,
                                 const CallOptions& options) {
  return run(detail::call_of(RINGBOLT_ALL_GATHERV, in, out, counts, {}, type, options));
}

inline Status Group::broadcast(void* data, size_t count, Type type, uint32_t root, const CallOptions& options) {
  return run(detail::call_of(RINGBOLT_BROADCAST, nullptr, data, count, type, {}, root, options));
}

inline Status Group::reduce(const void* in, void* out, size_t count, Type type, Reduction reduction, uint32_t root,
                            const CallOptions& options) {
  return run(detail::call_of(RINGBOLT_REDUCE, in, out, count, type, reduction, root, options));
}

inline Status Group::gather(const void* in, void* out, size_t count, Type type, uint32_t root,
                            const CallOptions& options) {
  return run(detail::call_of(RINGBOLT_GATHER, in, out, count, type, {}, root, options));
}

inline Status Group::scatter(const void* in, void* out, size_t count, Type type, uint32_t root,
                             const CallOptions& options) {
  return run(detail::call_of(RINGBOLT_SCATTER, in, out, count, type, {}, root, options));
}

inline Status Group::all_to_all(const void* in, void* out, size_t count, Type type, const CallOptions& options) {
  return run(detail::call_of(RINGBOLT_ALL_TO_ALL, in, out, count, type, {}, 0, options));
}

inline Status Group::all_to_allv(const void* in, const std::vector<size_t>& sent, void* out,
                                 const std::vector<size_t>& received, Type type, const CallOptions& options) {
  return run(detail::call_of(RINGBOLT_ALL_TO_ALLV, in, out, sent, received, type, options));
}

inline Status Group::barrier(const CallOptions& options) {
  return run(detail::call_of(RINGBOLT_BARRIER, nullptr, nullptr, 0, {}, {}, 0, options));
}

inline Status Group::send(const void* data, size_t count, Type type, uint32_t peer, const CallOptions& options) {
  return run(detail::call_of(RINGBOLT_SEND, data, nullptr, count, type, {}, peer, options));
}

inline Status Group::recv(void* data, size_t count, Type type, uint32_t peer, const CallOptions& options) {
  return run(detail::call_of(RINGBOLT_RECV, nullptr, data, count, type, {}, peer, options));
}

inline Request Group::all_reduce_async(const void* in, void* out, size_t count, Type type, Reduction reduction,
                                       const CallOptions& options) {
  return start(detail::call_of(RINGBOLT_ALL_REDUCE, in, out, count, type, reduction, 0, options));
}

inline Request Group::reduce_scatter_async(const void* in, void* out, size_t count, Type type, Reduction reduction,
                                           const CallOptions& options) {
  return start(detail::call_of(RINGBOLT_REDUCE_SCATTER, in, out, count, type, reduction, 0, options));
}

inline Request Group::all_gather_async(const void* in, void* out, size_t count, Type type, const CallOptions& options) {
  return start(detail::call_of(RINGBOLT_ALL_GATHER, in, out, count, type, {}, 0, options));
}

inline Request Group::all_gatherv_async(const void* in, void* out, const std::vector<size_t>& counts, Type type,
                                        const CallOptions& options) {
  return start(detail::call_of(RINGBOLT_ALL_GATHERV, in, out, counts, {}, type, options));
}

inline Request Group::broadcast_async(void* data, size_t count, Type type, uint32_t root, const CallOptions& options) {
  return start(detail::call_of(RINGBOLT_BROADCAST, nullptr, data, count, type, {}, root, options));
}

inline Request Group::reduce_async(const void* in, void* out, size_t count, Type type, Reduction reduction,
                                   uint32_t root, const CallOptions& options) {
  return start(detail::call_of(RINGBOLT_REDUCE, in, out, count, type, reduction, root, options));
}

inline Request Group::gather_async(const void* in, void* out, size_t count, Type type, uint32_t root,
                                   const CallOptions& options) {
  return start(detail::call_of(RINGBOLT_GATHER, in, out, count, type, {}, root, options));
}

inline Request Group::scatter_async(const void* in, void* out, size_t count, Type type, uint32_t root,
                                    const CallOptions& options) {
  return start(detail::call_of(RINGBOLT_SCATTER, in, out, count, type, {}, root, options));
}

inline Request Group::all_to_all_async(const void* in, void* out, size_t count, Type type, const CallOptions& options) {
  return start(detail::call_of(RINGBOLT_ALL_TO_ALL, in, out, count, type, {}, 0, options));
}

inline Request Group::all_to_allv_async(const void* in, const std::vector<size_t>& sent, void* out,
                                        const std::vector<size_t>& received, Type type, const CallOptions& options) {
  return start(detail::call_of(RINGBOLT_ALL_TO_ALLV, in, out, sent, received, type, options));
}

inline Request Group::barrier_async(const CallOptions& options) {
  return start(detail::call_of(RINGBOLT_BARRIER, nullptr, nullptr, 0, {}, {}, 0, options));
}

inline Request Group::send_async(const void* data, size_t count, Type type, uint32_t peer, const CallOptions& options) {
  return start(detail::call_of(RINGBOLT_SEND, data, nullptr, count, type, {}, peer, options));
}

inline Request Group::recv_async(void* data, size_t count, Type type, uint32_t peer, const CallOptions& options) {
  return start(detail::call_of(RINGBOLT_RECV, nullptr, data, count, type, {}, peer, options));
}

inline Group Group::split(int color, int key) {
  ringbolt_group* group = nullptr;
  const int code = ringbolt_split(group_.get(), color, key, &group);
  return made(code, group);
}

inline Group Group::subgroup(const std::vector<uint32_t>& ranks, const Exchange& exchange) {
  ProgramExchange program{exchange, {}};
  ringbolt_group* group = nullptr;
  const int code = ringbolt_subgroup(group_.get(), ranks.data(), ranks.size(), &Group::exchange, &program, &group);
  program.rethrow();
  return made(code, group);
}

inline Group Group::shrink() {
  ringbolt_group* group = nullptr;
  const int code = ringbolt_shrink(group_.get(), &group);
  return made(code, group);
}

inline Group Group::rejoin() {
  ringbolt_group* group = nullptr;
  const int code = ringbolt_rejoin(group_.get(), &group);
  return made(code, group);
}

inline void Group::abort(const std::string& reason) { (void)ringbolt_abort(group_.get(), reason.c_str()); }

inline int Group::progress_fd() {
  int fd = -1;
  detail::check(ringbolt_progress_fd(group_.get(), &fd));
  return fd;
}

inline std::vector<uint32_t> Group::relays(uint32_t peer) const {
  std::vector<uint32_t> relays(16);
  size_t n = 0;
  int code = 0;
  do {
    relays.resize(std::max(n, relays.size()));
    code = ringbolt_relays(group_.get(), peer, relays.data(), relays.size(), &n);
  } while (code == 0 && n > relays.size());
  if (code == ERANGE) {
    throw std::out_of_range(ringbolt_error());
  }
  detail::check(code);
  relays.resize(n);
  return relays;
}

inline std::string Group::report() const {
  return detail::words_of([this](char* text, size_t size) { return ringbolt_report(group_.get(), text, size); });
}

inline std::string Group::explain(const std::string& operation, size_t count, Type type) const {
  return detail::words_of([&](char* text, size_t size) {
    return ringbolt_explain(group_.get(), operation.c_str(), count, static_cast<ringbolt_type>(type), text, size);
  });
}

}  // namespace ringbolt
