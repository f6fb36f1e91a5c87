#include "bootstrap/authenticator.h"

#include <algorithm>
#include <cerrno>
#include <string>

#include <sodium.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/little_endian.h"

namespace ringbolt::bootstrap {
namespace {

void add(crypto_auth_hmacsha256_state& state, std::span<const std::byte> bytes) {
  crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

// Without it bytes could be moved from the end of one part to the beginning of the next, and the MAC would stay the
// same.
void add_with_length(crypto_auth_hmacsha256_state& state, std::span<const std::byte> bytes) {
  std::array<std::byte, 4> length{};
  base::put_le(std::span<std::byte>(length), 0, static_cast<uint32_t>(bytes.size()));
  add(state, length);
  add(state, bytes);
}

Mac finish(crypto_auth_hmacsha256_state& state) {
  Mac mac;
  crypto_auth_hmacsha256_final(&state, reinterpret_cast<unsigned char*>(mac.data()));
  return mac;
}

crypto_auth_hmacsha256_state start_mac(std::span<const std::byte> key) {
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, reinterpret_cast<const unsigned char*>(key.data()), key.size());
  return state;
}

}  // namespace

void prepare_cryptography() {
  if (sodium_init() < 0) {
    throw base::Error(EIO, "sodium_init", "libsodium", "is there a source of random numbers?");
  }
}

Key key_of(std::string_view secret) {
  auto state = start_mac(std::as_bytes(std::span(secret)));
  // The secret itself keys nothing else: what is derived from it differs from other protocols' uses of the same
  // words.
  constexpr std::string_view kWhat = "ringbolt bootstrap 1 key";
  add(state, std::as_bytes(std::span(kWhat)));
  return finish(state);
}

Mac mac_of(const Key& key, std::string_view purpose, std::span<const std::byte> hello,
           std::span<const std::byte> challenge) {
  auto state = start_mac(key);
  const std::string what = "ringbolt bootstrap 1 " + std::string(purpose);
  // With the zero, so that no purpose is the beginning of another.
  add(state, std::as_bytes(std::span(what.c_str(), what.size() + 1)));
  add_with_length(state, hello);
  add_with_length(state, challenge);
  return finish(state);
}

bool is_equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

Nonce random_nonce() {
  Nonce nonce;
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

uint64_t random_number() {
  uint64_t number = 0;
  randombytes_buf(&number, sizeof number);
  return number;
}

Authenticator::Authenticator(const Key& key) : keyed_(start_mac(key)) {}

Authenticator::~Authenticator() { sodium_memzero(&keyed_, sizeof keyed_); }

std::array<std::byte, kTagBytes> Authenticator::tag(std::span<const std::byte> header,
                                                    std::span<const std::byte> payload) {
  // A copy, already keyed: the two blocks of the key are hashed once and not for each frame.
  auto state = keyed_;
  std::array<std::byte, 8> number{};
  base::put_le(std::span<std::byte>(number), 0, n_frames_++);
  add(state, number);
  add(state, header);
  add(state, payload);
  const Mac mac = finish(state);
  std::array<std::byte, kTagBytes> tag;
  std::copy_n(mac.begin(), kTagBytes, tag.begin());
  return tag;
}

bool Authenticator::matches(std::span<const std::byte> header, std::span<const std::byte> payload,
                            std::span<const std::byte> tag_of_peer) {
  return is_equal(tag(header, payload), tag_of_peer);
}

}  // namespace ringbolt::bootstrap
