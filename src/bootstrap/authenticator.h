#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <sodium/crypto_auth_hmacsha256.h>

/// Who has the secret. HMAC-SHA256 (RFC 2104, FIPS 180-4) by libsodium.
namespace ringbolt::bootstrap {

inline constexpr size_t kNonceBytes = 32;
inline constexpr size_t kMacBytes = 32;
/// A MAC cut to its first half, as RFC 2104 section 5 allows.
inline constexpr size_t kTagBytes = 16;

using Key = std::array<std::byte, kMacBytes>;
using Mac = std::array<std::byte, kMacBytes>;
using Nonce = std::array<std::byte, kNonceBytes>;

/// Prepares the library; throws base::Error if it can't be. To be called before anything else here. Thread-safe.
void prepare_cryptography();

/// The key of a secret, the empty one included. Thread-safe. Wiping it is not worth while: the secret stands in the
/// environment or a file.
Key key_of(std::string_view secret);

/// The MAC of "ringbolt bootstrap 1 <purpose>", a zero byte and the two frames of a handshake that hold the nonces,
/// each behind its length. Different purposes give proofs and keys that can't stand for each other. Thread-safe.
Mac mac_of(const Key& key, std::string_view purpose, std::span<const std::byte> hello,
           std::span<const std::byte> challenge);

/// Takes the same time whatever is in them. Thread-safe.
bool is_equal(std::span<const std::byte> a, std::span<const std::byte> b);

/// Both of the kernel's random numbers, by libsodium. Thread-safe after prepare_cryptography().
Nonce random_nonce();
uint64_t random_number();

/// Tags the frames of one direction of one connection, in order: a frame that is missing, repeated or from another
/// connection has another tag. Not thread-safe. Holds the key's state, which its destructor wipes. After 2^64 frames
/// tags would repeat.
class Authenticator {
 public:
  explicit Authenticator(const Key& key);
  ~Authenticator();
  Authenticator(const Authenticator&) = default;
  Authenticator& operator=(const Authenticator&) = default;

  /// Of the next frame.
  std::array<std::byte, kTagBytes> tag(std::span<const std::byte> header, std::span<const std::byte> payload);
  /// Whether this is the tag of the next frame. Counts the frame either way: after a wrong tag the stream is of no
  /// use any more.
  bool matches(std::span<const std::byte> header, std::span<const std::byte> payload, std::span<const std::byte> tag);

 private:
  crypto_auth_hmacsha256_state keyed_;
  uint64_t n_frames_ = 0;
};

}  // namespace ringbolt::bootstrap
