#include "nccl/plugin.h"

#include <dlfcn.h>

#include <array>
#include <cstdarg>
#include <cstdio>

#include <fmt/format.h>

#include "base/say.h"
#include "failure.h"
#include "node_environment.h"

namespace ringbolt::tools::nccl_command {
namespace {

/// What went wrong last, in the plugin's words: a number is all that its calls return.
std::string& last_warning() {
  static std::string words;
  return words;
}

void log(int level, unsigned long, const char*, int, const char* format, ...) {
  constexpr int kWarn = 2;
  if (level != kWarn) {
    return;
  }
  std::array<char, 600> text{};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  last_warning() = text.data();
}

void check(int result, const char* call) {
  if (result != 0) {
    throw FoundProblem(fmt::format("{} of the plugin returned {} (ncclResult_t): {}", call, result, last_warning()));
  }
}

}  // namespace

Plugin::Plugin(const std::string& path) {
  void* const object = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  table_ = object == nullptr ? nullptr : static_cast<const nccl::abi::NetV11*>(::dlsym(object, "ncclNetPlugin_v11"));
  if (table_ == nullptr) {
    throw FoundProblem(::dlerror());
  }
  check(table_->init(&context_, 1, nullptr, log, nullptr), "init");
}

Plugin::~Plugin() { (void)table_->finalize(context_); }

void* Plugin::listen(Handle& handle) {
  void* listener = nullptr;
  check(table_->listen(context_, 0, handle.data(), &listener), "listen");
  return listener;
}

void Plugin::close_listener(void* listener) { (void)table_->ending.close_listen(listener); }

void* Plugin::connect(Handle& handle) {
  void* comm = nullptr;
  check(table_->connect(context_, 0, handle.data(), &comm, nullptr), "connect");
  return comm;
}

void* Plugin::accept(void* listener) {
  void* comm = nullptr;
  check(table_->setup.accept(listener, &comm, nullptr), "accept");
  return comm;
}

void* Plugin::send(void* comm, void* data, size_t size) {
  void* request = nullptr;
  check(table_->isend(comm, data, size, 0, nullptr, nullptr, &request), "isend");
  return request;
}

void* Plugin::receive(void* comm, void* data, size_t size) {
  void* request = nullptr;
  int tag = 0;
  check(table_->irecv(comm, 1, &data, &size, &tag, nullptr, nullptr, &request), "irecv");
  return request;
}

bool Plugin::test(void* request, int& size) {
  int is_done = 0;
  check(table_->ending.test(request, &is_done, &size), "test");
  return is_done != 0;
}

void Plugin::close_send(void* comm) { (void)table_->ending.close_send(comm); }
void Plugin::close_receive(void* comm) { (void)table_->ending.close_receive(comm); }

std::string installed_plugin() { return own_prefix() + "/lib/libnccl-net-ringbolt.so"; }

}  // namespace ringbolt::tools::nccl_command
