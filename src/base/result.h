#pragma once

#include <tl/expected.hpp>

namespace ringbolt::base {

/// An errno value as the failure side of a Result. Never 0.
struct Errno {
  int value = 0;
  friend bool operator==(const Errno&, const Errno&) = default;
};

/// What an operation made, or the errno that says why it could not.
template <class T>
using Result = tl::expected<T, Errno>;

inline tl::unexpected<Errno> fail(int error) { return tl::unexpected<Errno>(Errno{error}); }

}  // namespace ringbolt::base
