#include "fabric/fraction.h"

#include <cerrno>
#include <limits>
#include <numeric>

#include "base/assert.h"
#include "base/error.h"

namespace ringbolt::fabric {
namespace {

__extension__ using Wide = __int128;

[[noreturn]] void refuse_overflow() {
  throw base::Error(EOVERFLOW, "exact arithmetic", "fabric", "give cables speeds with common divisors");
}

/// Both terms are products of two 64-bit numbers or a sum of two such, so 128 bits hold them.
Fraction reduced(Wide numerator, Wide denominator) {
  Wide a = numerator < 0 ? -numerator : numerator;
  // Positive, as all callers see to: Euclid's algorithm then ends with a positive divisor.
  Wide b = denominator;
  while (b != 0) {
    const Wide rest = a % b;
    a = b;
    b = rest;
  }
  numerator /= a;
  denominator /= a;
  constexpr Wide kMost = std::numeric_limits<int64_t>::max();
  if (numerator > kMost || numerator < -kMost || denominator > kMost) {
    refuse_overflow();
  }
  return {static_cast<int64_t>(numerator), static_cast<int64_t>(denominator)};
}

Wide wide(int64_t value) { return value; }

}  // namespace

Fraction::Fraction(int64_t numerator, int64_t denominator) : numerator_(numerator), denominator_(denominator) {
  // The least number has no positive counterpart, and gcd() is not defined for it.
  RINGBOLT_ASSERT(denominator != 0 && numerator != std::numeric_limits<int64_t>::min() &&
                  denominator != std::numeric_limits<int64_t>::min());
  if (denominator_ < 0) {
    numerator_ = -numerator_;
    denominator_ = -denominator_;
  }
  const int64_t divisor = std::gcd(numerator_, denominator_);
  numerator_ /= divisor;
  denominator_ /= divisor;
}

int64_t Fraction::checked(bool fits, int64_t value) {
  if (!fits) {
    refuse_overflow();
  }
  return value;
}

int64_t Fraction::floor() const {
  const int64_t down = numerator_ / denominator_;
  // C++ rounds towards zero.
  return numerator_ < 0 && down * denominator_ != numerator_ ? down - 1 : down;
}

std::string Fraction::text() const {
  return is_whole() ? std::to_string(numerator_) : std::to_string(numerator_) + "/" + std::to_string(denominator_);
}

Fraction operator+(const Fraction& a, const Fraction& b) {
  // Each product is below 2^126, so their sum fits.
  return reduced(wide(a.numerator_) * b.denominator_ + wide(b.numerator_) * a.denominator_,
                 wide(a.denominator_) * b.denominator_);
}

Fraction operator-(const Fraction& a, const Fraction& b) { return a + Fraction(-b.numerator_, b.denominator_); }

Fraction operator*(const Fraction& a, const Fraction& b) {
  return reduced(wide(a.numerator_) * b.numerator_, wide(a.denominator_) * b.denominator_);
}

Fraction operator/(const Fraction& a, const Fraction& b) {
  RINGBOLT_ASSERT(b.numerator_ != 0);
  // Keeps the denominator positive.
  const Wide sign = b.numerator_ < 0 ? -1 : 1;
  return reduced(sign * a.numerator_ * b.denominator_, sign * a.denominator_ * b.numerator_);
}

std::strong_ordering operator<=>(const Fraction& a, const Fraction& b) {
  const Wide left = wide(a.numerator_) * b.denominator_;
  const Wide right = wide(b.numerator_) * a.denominator_;
  return left < right   ? std::strong_ordering::less
         : left > right ? std::strong_ordering::greater
                        : std::strong_ordering::equal;
}

int64_t checked_product(int64_t a, int64_t b) {
  const Wide product = wide(a) * b;
  constexpr Wide kMost = std::numeric_limits<int64_t>::max();
  if (product > kMost || product < -kMost) {
    refuse_overflow();
  }
  return static_cast<int64_t>(product);
}

int64_t least_common_multiple(int64_t a, int64_t b) {
  RINGBOLT_ASSERT(a > 0 && b > 0);
  return checked_product(a / std::gcd(a, b), b);
}

}  // namespace ringbolt::fabric
