// Instructions of UCX's own interface, UCP: two workers in this process, on one thread, which talk over the shared
// memory that UCX_TLS names, as two processes would. Memory comes from ucp_mem_map.
#include <fmt/format.h>
#include <ucp/api/ucp.h>

#include <cstring>
#include <stdexcept>
#include <utility>

#include "counter.h"

namespace ringbolt::bench {
namespace {

constexpr ucp_tag_t kTag = 7;
constexpr uint64_t kWarmUp = 256;
constexpr size_t kBytes = 8;
constexpr size_t kArenaBytes = 64 << 10;
constexpr size_t kFarOffset = 4096;
constexpr int kMostPolls = 1'000'000;

void check(ucs_status_t status, const char* call) {
  if (status != UCS_OK) {
    throw std::runtime_error(fmt::format("UCX: {}: {}", call, ucs_status_string(status)));
  }
}

/// One end: a worker and the endpoint to the other one.
class End {
 public:
  explicit End(ucp_context_h context) {
    ucp_worker_params_t parameters{};
    parameters.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    parameters.thread_mode = UCS_THREAD_MODE_SINGLE;
    check(ucp_worker_create(context, &parameters, &worker_), "ucp_worker_create");
  }
  ~End() { ucp_worker_destroy(worker_); }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  void connect(const End& other) {
    ucp_address_t* address = nullptr;
    size_t length = 0;
    check(ucp_worker_get_address(other.worker_, &address, &length), "ucp_worker_get_address");
    ucp_ep_params_t parameters{};
    parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    parameters.address = address;
    const ucs_status_t status = ucp_ep_create(worker_, &parameters, &endpoint_);
    ucp_worker_release_address(other.worker_, address);
    check(status, "ucp_ep_create");
  }

  void* send(const void* data) {
    const ucp_request_param_t parameters{};
    return ucp_tag_send_nbx(endpoint_, data, kBytes, kTag, &parameters);
  }
  void* receive(void* data) {
    const ucp_request_param_t parameters{};
    return ucp_tag_recv_nbx(worker_, data, kBytes, kTag, ~ucp_tag_t{0}, &parameters);
  }
  void progress() { ucp_worker_progress(worker_); }
  /// Until the request is done, which mostly it is before it is made.
  void wait(void* request) {
    if (request == nullptr) {
      return;
    }
    if (UCS_PTR_IS_ERR(request)) {
      check(UCS_PTR_STATUS(request), "operation");
    }
    ucs_status_t status = ucp_request_check_status(request);
    for (int i = 0; status == UCS_INPROGRESS && i < kMostPolls; ++i) {
      ++polls_;
      ucp_worker_progress(worker_);
      status = ucp_request_check_status(request);
    }
    ucp_request_free(request);
    check(status, "completion");
  }
  uint64_t polls() { return std::exchange(polls_, 0); }
  ucp_ep_h endpoint() const { return endpoint_; }

 private:
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  uint64_t polls_ = 0;
};

class Context {
 public:
  Context() {
    ucp_config_t* config = nullptr;
    check(ucp_config_read(nullptr, nullptr, &config), "ucp_config_read");
    ucp_params_t parameters{};
    parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
    parameters.features = UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AMO64;
    const ucs_status_t status = ucp_init(&parameters, config, &handle_);
    ucp_config_release(config);
    check(status, "ucp_init");
  }
  ~Context() { ucp_cleanup(handle_); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ucp_context_h handle() const { return handle_; }

 private:
  ucp_context_h handle_ = nullptr;
};

/// Both ends, connected, and memory of the far one that the near one reaches.
class Ends {
 public:
  Ends() : near(context_.handle()), far(context_.handle()) {
    near.connect(far);
    far.connect(near);
    map_arena();
    for (uint64_t i = 0; i < kWarmUp; ++i) {  // until both have found their way to each other
      void* receive = far.receive(arena + kFarOffset);
      void* send = near.send(arena);
      for (int turn = 0; turn < 100 && i == 0; ++turn) {
        near.progress();
        far.progress();
      }
      far.wait(receive);
      near.wait(send);
    }
    near.polls();
    far.polls();
  }
  ~Ends() {
    ucp_rkey_destroy(key);
    ucp_mem_unmap(context_.handle(), memory_);
  }
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;

  uint64_t remote() const { return reinterpret_cast<uint64_t>(arena + kFarOffset); }

 private:
  void map_arena() {
    ucp_mem_map_params_t parameters{};
    parameters.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
    parameters.length = kArenaBytes;
    parameters.flags = UCP_MEM_MAP_ALLOCATE;
    check(ucp_mem_map(context_.handle(), &parameters, &memory_), "ucp_mem_map");
    ucp_mem_attr_t attributes{};
    attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
    check(ucp_mem_query(memory_, &attributes), "ucp_mem_query");
    arena = static_cast<std::byte*>(attributes.address);
    std::memset(arena, 1, kArenaBytes);
    void* packed = nullptr;
    size_t length = 0;
    check(ucp_rkey_pack(context_.handle(), memory_, &packed, &length), "ucp_rkey_pack");
    const ucs_status_t status = ucp_ep_rkey_unpack(near.endpoint(), packed, &key);
    ucp_rkey_buffer_release(packed);
    check(status, "ucp_ep_rkey_unpack");
  }

  Context context_;
  ucp_mem_h memory_ = nullptr;

 public:
  End near;
  End far;
  std::byte* arena = nullptr;
  ucp_rkey_h key = nullptr;
};

void sends(InstructionCounter& counter, uint64_t operations) {
  Ends ends;
  for (uint64_t i = 0; i < operations; ++i) {
    void* receive = ends.far.receive(ends.arena + kFarOffset);
    void* send = nullptr;
    counter.measure([&] { ends.near.wait(send = ends.near.send(ends.arena)); });
    ends.far.wait(receive);
  }
  counter.report("send.sender", operations, ends.near.polls());
  ends.far.polls();
  for (uint64_t i = 0; i < operations; ++i) {
    void* receive = nullptr;
    counter.measure([&] { receive = ends.far.receive(ends.arena + kFarOffset); });
    ends.near.wait(ends.near.send(ends.arena));
    counter.measure([&] { ends.far.wait(receive); });
  }
  counter.report("send.receiver", operations, ends.far.polls());
}

template <class Operation>
void one_sided(InstructionCounter& counter, const char* name, uint64_t operations, Operation operation) {
  Ends ends;
  const ucp_request_param_t parameters{};
  for (uint64_t i = 0; i < kWarmUp; ++i) {
    ends.near.wait(operation(ends, parameters));
    ends.far.progress();
  }
  ends.near.polls();
  for (uint64_t i = 0; i < operations; ++i) {
    counter.measure([&] { ends.near.wait(operation(ends, parameters)); });
  }
  counter.report(name, operations, ends.near.polls());
}

void put(InstructionCounter& counter, uint64_t operations) {
  one_sided(counter, "write", operations, [](Ends& ends, const ucp_request_param_t& parameters) {
    return ucp_put_nbx(ends.near.endpoint(), ends.arena, kBytes, ends.remote(), ends.key, &parameters);
  });
}

void get(InstructionCounter& counter, uint64_t operations) {
  one_sided(counter, "read", operations, [](Ends& ends, const ucp_request_param_t& parameters) {
    return ucp_get_nbx(ends.near.endpoint(), ends.arena, kBytes, ends.remote(), ends.key, &parameters);
  });
}

void fetch_add(InstructionCounter& counter, uint64_t operations) {
  one_sided(counter, "fetch_add", operations, [](Ends& ends, const ucp_request_param_t&) {
    static const uint64_t one = 1;
    ucp_request_param_t parameters;  // NOLINT: only what the mask names is read
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_REPLY_BUFFER | UCP_OP_ATTR_FIELD_DATATYPE;
    parameters.reply_buffer = ends.arena;
    parameters.datatype = ucp_dt_make_contig(kBytes);
    return ucp_atomic_op_nbx(ends.near.endpoint(), UCP_ATOMIC_OP_ADD, &one, 1, ends.remote(), ends.key, &parameters);
  });
}

void empty_poll(InstructionCounter& counter, uint64_t operations) {
  Ends ends;
  for (uint64_t i = 0; i < operations; ++i) {
    counter.measure([&] { ends.near.progress(); });
  }
  counter.report("empty_poll_1", operations);
}

}  // namespace
}  // namespace ringbolt::bench

int main(int argc, char** argv) {
  using namespace ringbolt::bench;
  return run_kinds(
      argc, argv,
      {{"send", sends}, {"write", put}, {"read", get}, {"fetch_add", fetch_add}, {"empty_poll", empty_poll}});
}
