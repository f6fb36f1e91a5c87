// Owners of verbs objects. Destruction that fails fails the test: nothing may be left in use.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

namespace ringbolt::conformance {

template <typename T, int (*kDestroy)(T*)>
struct Destroy {
  void operator()(T* object) const {
    const int error = kDestroy(object);
    EXPECT_EQ(error, 0) << "destroying a " << typeid(T).name() << ": " << std::strerror(error);
  }
};

/// Types of its own: these two are inline functions in the header.
struct DestroyWindow {
  void operator()(ibv_mw* window) const { EXPECT_EQ(ibv_dealloc_mw(window), 0); }
};

using Context = std::unique_ptr<ibv_context, Destroy<ibv_context, ibv_close_device>>;
using Pd = std::unique_ptr<ibv_pd, Destroy<ibv_pd, ibv_dealloc_pd>>;
using Mr = std::unique_ptr<ibv_mr, Destroy<ibv_mr, ibv_dereg_mr>>;
using Mw = std::unique_ptr<ibv_mw, DestroyWindow>;
using Ah = std::unique_ptr<ibv_ah, Destroy<ibv_ah, ibv_destroy_ah>>;
using Cq = std::unique_ptr<ibv_cq, Destroy<ibv_cq, ibv_destroy_cq>>;
using Srq = std::unique_ptr<ibv_srq, Destroy<ibv_srq, ibv_destroy_srq>>;
using Qp = std::unique_ptr<ibv_qp, Destroy<ibv_qp, ibv_destroy_qp>>;
using Channel =
    std::unique_ptr<ibv_comp_channel, Destroy<ibv_comp_channel, ibv_destroy_comp_channel>>;

/// Set-up of a test that did not work; GoogleTest reports it as the test's failure.
struct SetUpError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Returns `object`; throws SetUpError with errno when it is null.
template <typename T>
T* must(T* object, const char* call) {
  if (object == nullptr) {
    throw SetUpError(std::string(call) + ": " + std::strerror(errno));
  }
  return object;
}

/// Throws SetUpError unless `error` is 0.
inline void must_succeed(int error, const char* call) {
  if (error != 0) {
    throw SetUpError(std::string(call) + ": " + std::strerror(error));
  }
}

}  // namespace ringbolt::conformance
