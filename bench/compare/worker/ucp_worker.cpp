// UCX through its own UCP interface, in the same loops as everybody else: tag matching, put, get, fetch-and-add.
// The transports are chosen by UCX_TLS. `--memory shared` takes memory from ucp_mem_map, as ucx_perftest does.
#include <fmt/format.h>
#include <ucp/api/ucp.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "serve.h"

namespace ringbolt::bench {
namespace {

void check(ucs_status_t status, const char* call) {
  if (status != UCS_OK) {
    throw std::runtime_error(fmt::format("UCX: {}: {}", call, ucs_status_string(status)));
  }
}

class UcpChannel {
 public:
  UcpChannel(const Options& options, Control& control) : rank(options.rank), ranks(options.ranks) {
    open_worker(options.may_have_threads);
    map_arena(options.memory);
    connect(control);
  }
  ~UcpChannel() {
    ucp_rkey_destroy(remote_key_);
    wait(ucp_ep_close_nb(endpoint_, UCP_EP_CLOSE_MODE_FORCE));
    ucp_mem_unmap(context_, memory_);
    ucp_worker_destroy(worker_);
    ucp_cleanup(context_);
  }
  UcpChannel(const UcpChannel&) = delete;
  UcpChannel& operator=(const UcpChannel&) = delete;

  static std::string description() {
    const char* transports = std::getenv("UCX_TLS");
    return fmt::format("UCX {} UCX_TLS={}", ucp_get_version_string(), transports == nullptr ? "" : transports);
  }

  void expect(std::size_t size) {
    ucp_request_param_t parameters{};
    receive_ = ucp_tag_recv_nbx(worker_, arena.incoming(), size, kTag, ~ucp_tag_t{0}, &parameters);
  }
  void send(std::size_t size) {
    ucp_request_param_t parameters{};
    send_ = ucp_tag_send_nbx(endpoint_, arena.outgoing(), size, kTag, &parameters);
  }
  void receive(std::size_t) { wait(std::exchange(receive_, nullptr)); }
  void flush() { wait(std::exchange(send_, nullptr)); }
  void progress() { ucp_worker_progress(worker_); }

  void put(uint64_t value) {
    std::memcpy(arena.slot(0), &value, sizeof value);
    ucp_request_param_t parameters{};
    wait(ucp_put_nbx(endpoint_, arena.slot(0), sizeof value, remote(arena.slot(1)), remote_key_, &parameters));
  }
  void get(std::size_t size) {
    ucp_request_param_t parameters{};
    wait(ucp_get_nbx(endpoint_, arena.incoming(), size, remote(arena.outgoing()), remote_key_, &parameters));
  }
  uint64_t fetch_add() {
    uint64_t old = 0;
    const uint64_t one = 1;
    ucp_request_param_t parameters{};
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_REPLY_BUFFER | UCP_OP_ATTR_FIELD_DATATYPE;
    parameters.reply_buffer = &old;
    parameters.datatype = ucp_dt_make_contig(sizeof one);
    wait(ucp_atomic_op_nbx(endpoint_, UCP_ATOMIC_OP_ADD, &one, 1, remote(arena.slot(2)), remote_key_, &parameters));
    return old;
  }

  void stream_in_begin(uint64_t, const std::string&) {}
  void stream_out(uint64_t count, const std::string& operation) {
    ucp_request_param_t parameters{};
    std::array<void*, kWindow> requests{};
    const bool is_put = operation == "rate_write";
    for (uint64_t i = 0; i < count; ++i) {
      const unsigned slot = i % kWindow;
      wait(requests[slot]);
      fill(arena.slot(slot), sizeof i, seed_of(0, i));
      requests[slot] =
          is_put ? ucp_put_nbx(endpoint_, arena.slot(slot), sizeof i, remote(arena.slot(slot)), remote_key_, &parameters)
                 : ucp_tag_send_nbx(endpoint_, arena.slot(slot), sizeof i, kTag, &parameters);
    }
    for (void* request : requests) {
      wait(request);
    }
    wait(ucp_ep_flush_nbx(endpoint_, &parameters));
    if (!is_put) {
      wait(ucp_tag_recv_nbx(worker_, arena.slot(0), sizeof(uint64_t), kTag, ~ucp_tag_t{0}, &parameters));
    }
  }
  void stream_in(uint64_t count, const std::string& operation) {
    ucp_request_param_t parameters{};
    if (operation == "rate_write") {
      wait_for_word(*this, arena.slot((count - 1) % kWindow), seed_of(0, count - 1));
      return;
    }
    std::array<void*, kWindow> requests{};
    for (uint64_t i = 0; i < count + kWindow; ++i) {
      const unsigned slot = i % kWindow;
      if (i >= kWindow) {
        wait(requests[slot]);
        expect_holds(arena.slot(slot), sizeof i, seed_of(0, i - kWindow));
      }
      if (i < count) {
        requests[slot] =
            ucp_tag_recv_nbx(worker_, arena.slot(slot), sizeof i, kTag, ~ucp_tag_t{0}, &parameters);
      }
    }
    wait(ucp_tag_send_nbx(endpoint_, arena.slot(0), sizeof(uint64_t), kTag, &parameters));
  }

 private:
  static constexpr ucp_tag_t kTag = 7;
  static constexpr unsigned kWindow = 64;

  void open_worker(bool may_have_threads) {
    ucp_config_t* config = nullptr;
    check(ucp_config_read(nullptr, nullptr, &config), "ucp_config_read");
    ucp_params_t parameters{};
    parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
    parameters.features = UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AMO64;
    const ucs_status_t status = ucp_init(&parameters, config, &context_);
    ucp_config_release(config);
    check(status, "ucp_init");
    ucp_worker_params_t worker_parameters{};
    worker_parameters.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker_parameters.thread_mode = may_have_threads ? UCS_THREAD_MODE_MULTI : UCS_THREAD_MODE_SINGLE;
    check(ucp_worker_create(context_, &worker_parameters, &worker_), "ucp_worker_create");
    ucp_worker_attr_t given{};
    given.field_mask = UCP_WORKER_ATTR_FIELD_THREAD_MODE;
    check(ucp_worker_query(worker_, &given), "ucp_worker_query");
    if (may_have_threads && given.thread_mode != UCS_THREAD_MODE_MULTI) {
      throw std::runtime_error("this UCX was built without threads");
    }
  }

  void map_arena(Memory memory) {
    ucp_mem_map_params_t parameters{};
    parameters.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                            UCP_MEM_MAP_PARAM_FIELD_FLAGS;
    parameters.length = Arena::kBytes;
    if (memory == Memory::kPrivate) {
      parameters.address = make_private_arena().base;
    } else {
      parameters.flags = UCP_MEM_MAP_ALLOCATE;
    }
    check(ucp_mem_map(context_, &parameters, &memory_), "ucp_mem_map");
    ucp_mem_attr_t attributes{};
    attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
    check(ucp_mem_query(memory_, &attributes), "ucp_mem_query");
    arena.base = static_cast<std::byte*>(attributes.address);
    std::memset(arena.base, 1, Arena::kBytes);
    const uint64_t zero = 0;
    std::memcpy(arena.slot(2), &zero, sizeof zero);
  }

  /// A blob is: base address, length of the worker's address, that address, packed remote key.
  void connect(Control& control) {
    ucp_address_t* address = nullptr;
    std::size_t address_length = 0;
    void* key = nullptr;
    std::size_t key_length = 0;
    check(ucp_worker_get_address(worker_, &address, &address_length), "ucp_worker_get_address");
    check(ucp_rkey_pack(context_, memory_, &key, &key_length), "ucp_rkey_pack");
    std::string blob(2 * sizeof(uint64_t), '\0');
    const auto base = reinterpret_cast<uint64_t>(arena.base);
    std::memcpy(blob.data(), &base, sizeof base);
    std::memcpy(blob.data() + sizeof base, &address_length, sizeof address_length);
    blob.append(reinterpret_cast<const char*>(address), address_length);
    blob.append(static_cast<const char*>(key), key_length);
    ucp_worker_release_address(worker_, address);
    ucp_rkey_buffer_release(key);

    const std::string other = control.exchange(blob).at(1 - rank);
    std::memcpy(&remote_base_, other.data(), sizeof remote_base_);
    std::memcpy(&address_length, other.data() + sizeof remote_base_, sizeof address_length);
    ucp_ep_params_t parameters{};
    parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    parameters.address = reinterpret_cast<const ucp_address_t*>(other.data() + blob_header());
    check(ucp_ep_create(worker_, &parameters, &endpoint_), "ucp_ep_create");
    check(ucp_ep_rkey_unpack(endpoint_, other.data() + blob_header() + address_length, &remote_key_),
          "ucp_ep_rkey_unpack");
  }
  static constexpr std::size_t blob_header() { return 2 * sizeof(uint64_t); }

  uint64_t remote(const std::byte* ours) const {
    return remote_base_ + static_cast<uint64_t>(ours - arena.base);
  }

  void wait(void* request) {
    if (request == nullptr) {
      return;
    }
    if (UCS_PTR_IS_ERR(request)) {
      check(UCS_PTR_STATUS(request), "operation");
    }
    ucs_status_t status = UCS_INPROGRESS;
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
      ucp_worker_progress(worker_);
    }
    ucp_request_free(request);
    check(status, "completion");
  }

 public:
  unsigned rank;
  unsigned ranks;
  Arena arena;

 private:
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_mem_h memory_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  ucp_rkey_h remote_key_ = nullptr;
  uint64_t remote_base_ = 0;
  void* receive_ = nullptr;
  void* send_ = nullptr;
};

}  // namespace
}  // namespace ringbolt::bench

int main(int argc, char** argv) { return ringbolt::bench::worker_main<ringbolt::bench::UcpChannel>(argc, argv); }
