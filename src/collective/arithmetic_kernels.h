// Included by one source file for each instruction set, which is compiled with that set's flags. All of it is in an
// unnamed namespace and uses no inline function of the standard library: a copy that was compiled for a newer processor
// must not stand for one that runs on all.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collective/arithmetic_numbers.h"
#include "collective/arithmetic_table.h"
// ARM64's base instruction set has all of them; there the flag is given to one file of two, so that both ways are
// tested.
#if (defined(__AVX2__) && defined(__F16C__)) || defined(RINGBOLT_NEON_KERNELS)
#define RINGBOLT_HAS_VECTORS 1
#include "collective/arithmetic_vectors.h"
#endif

#if defined(__clang__)
#define RINGBOLT_INDEPENDENT  // checks overlaps at run time
#else
#define RINGBOLT_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace ringbolt::collective {
namespace {

constexpr size_t kBlock = 1024;  // elements; two blocks of the widest stay in the first cache

template <class T>
void load_block(typename T::Value* to, const typename T::Stored* from, size_t count) {
  RINGBOLT_INDEPENDENT
  for (size_t i = 0; i < count; ++i) {
    to[i] = T::load(from + i);
  }
}

template <class T>
void store_block(typename T::Stored* to, const typename T::Value* from, size_t count) {
  RINGBOLT_INDEPENDENT
  for (size_t i = 0; i < count; ++i) {
    T::store(to + i, from[i]);
  }
}

/// See Kernel; of the elements from `done` on. A block at a time, so that what is reduced stays in the first cache and
/// `out` may be any source.
/// Up to 16 KiB of stack.
template <class T, class Op>
void run_from(size_t done, std::byte* out, const std::byte* const* sources, size_t n_sources, size_t count,
              uint32_t divisor) {
  using Value = typename T::Value;
  using Stored = typename T::Stored;
  Value result[kBlock];
  Value more[kBlock];
  for (; done < count; done += kBlock) {
    const size_t length = count - done < kBlock ? count - done : kBlock;
    const auto from = [&](size_t source) { return reinterpret_cast<const Stored*>(sources[source]) + done; };
    load_block<T>(result, from(0), length);
    for (size_t source = 1; source < n_sources; ++source) {
      load_block<T>(more, from(source), length);
      for (size_t i = 0; i < length; ++i) {
        result[i] = Op::of(result[i], more[i]);
      }
    }
    if (divisor != 0) {
      for (size_t i = 0; i < length; ++i) {
        result[i] = divided(result[i], divisor);
      }
    }
    store_block<T>(reinterpret_cast<Stored*>(out) + done, result, length);
  }
}

template <class T, class Op>
void run(std::byte* out, const std::byte* const* sources, size_t n_sources, size_t count, uint32_t divisor) {
  run_from<T, Op>(0, out, sources, n_sources, count, divisor);
}

/// Of 16-bit floating-point numbers.
template <class T, class Op>
void run_narrow(std::byte* out, const std::byte* const* sources, size_t n_sources, size_t count, uint32_t divisor) {
#if defined(RINGBOLT_HAS_VECTORS)
  const size_t done = run_vectors<T, Op>(out, sources, n_sources, count, divisor);
#else
  const size_t done = 0;
#endif
  run_from<T, Op>(done, out, sources, n_sources, count, divisor);
}

/// `n` sources of a type that is calculated with as it lies in memory: nothing needs to be kept in between.
/// `out` may be one of the sources, element by element; shifted against one it would need what run_from() does, and
/// reduce() does not allow that.
template <class T, class Op, size_t n>
void run_few(std::byte* out, const std::byte* const* sources, size_t count) {
  using Stored = typename T::Stored;
  const Stored* from[n];
  for (size_t source = 0; source < n; ++source) {
    from[source] = reinterpret_cast<const Stored*>(sources[source]);
  }
  auto* to = reinterpret_cast<Stored*>(out);
  RINGBOLT_INDEPENDENT
  for (size_t i = 0; i < count; ++i) {
    typename T::Value result = T::load(from[0] + i);
    for (size_t source = 1; source < n; ++source) {
      result = Op::of(result, T::load(from[source] + i));
    }
    T::store(to + i, result);
  }
}

template <class T, class Op>
void run_plain(std::byte* out, const std::byte* const* sources, size_t n_sources, size_t count, uint32_t divisor) {
  if (n_sources == 2 && divisor == 0) {
    run_few<T, Op, 2>(out, sources, count);
  } else if (n_sources == 3 && divisor == 0) {
    run_few<T, Op, 3>(out, sources, count);
  } else if (n_sources == 4 && divisor == 0) {
    run_few<T, Op, 4>(out, sources, count);
  } else {
    run<T, Op>(out, sources, n_sources, count, divisor);
  }
}

template <class T>
void fill_plain(Kernel* row) {
  row[static_cast<size_t>(Reduction::sum)] = run_plain<T, Sum>;
  row[static_cast<size_t>(Reduction::prod)] = run_plain<T, Product>;
  row[static_cast<size_t>(Reduction::max)] = run_plain<T, Extreme<true>>;
  row[static_cast<size_t>(Reduction::min)] = run_plain<T, Extreme<false>>;
  row[static_cast<size_t>(Reduction::avg)] = run_plain<T, Sum>;
}

template <class T>
void fill_narrow(Kernel* row) {
  row[static_cast<size_t>(Reduction::sum)] = run_narrow<T, Sum>;
  row[static_cast<size_t>(Reduction::prod)] = run_narrow<T, Product>;
  row[static_cast<size_t>(Reduction::max)] = run_narrow<T, Extreme<true>>;
  row[static_cast<size_t>(Reduction::min)] = run_narrow<T, Extreme<false>>;
  row[static_cast<size_t>(Reduction::avg)] = run_narrow<T, Sum>;
}

KernelTable make_table() {
  KernelTable table;
  const auto row = [&](Type type) { return table.kernels[static_cast<size_t>(type)]; };
  // Of booleans the sum is "or" and the product "and": those of 0 and 1 are the extremes.
  row(Type::boolean)[static_cast<size_t>(Reduction::sum)] = run_plain<Boolean, Extreme<true>>;
  row(Type::boolean)[static_cast<size_t>(Reduction::max)] = run_plain<Boolean, Extreme<true>>;
  row(Type::boolean)[static_cast<size_t>(Reduction::prod)] = run_plain<Boolean, Extreme<false>>;
  row(Type::boolean)[static_cast<size_t>(Reduction::min)] = run_plain<Boolean, Extreme<false>>;
  fill_plain<Plain<int8_t>>(row(Type::int8));
  fill_plain<Plain<int16_t>>(row(Type::int16));
  fill_plain<Plain<int32_t>>(row(Type::int32));
  fill_plain<Plain<int64_t>>(row(Type::int64));
  fill_plain<Plain<uint8_t>>(row(Type::uint8));
  fill_plain<Plain<uint16_t>>(row(Type::uint16));
  fill_plain<Plain<uint32_t>>(row(Type::uint32));
  fill_plain<Plain<uint64_t>>(row(Type::uint64));
  fill_narrow<Half>(row(Type::float16));
  fill_narrow<Bfloat>(row(Type::bfloat16));
  fill_plain<Plain<float>>(row(Type::float32));
  fill_plain<Plain<double>>(row(Type::float64));
  row(Type::complex64)[static_cast<size_t>(Reduction::sum)] = run_plain<Complex, Sum>;
  row(Type::complex64)[static_cast<size_t>(Reduction::prod)] = run_plain<Complex, Product>;
  row(Type::complex64)[static_cast<size_t>(Reduction::avg)] = run_plain<Complex, Sum>;
  return table;
}

}  // namespace
}  // namespace ringbolt::collective
