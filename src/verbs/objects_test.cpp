#include "verbs/objects.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "verbs/slab.h"
#include "verbs/soft_device_test_support.h"

namespace ringbolt::verbs {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

template <class Build>
std::string refusal(Build build) {
  try {
    build();
    return {};
  } catch (const base::Error& error) {
    return error.what();
  }
}

TEST(VerbsContext, opens_the_first_device_or_the_named_one) {
  const test::RuntimeFolder folder;
  const Library library = Library::open("soft");
  EXPECT_THAT(device_names(library), ElementsAre("rdma_lo"));
  EXPECT_EQ(Context(library, "").device(), "rdma_lo");
  EXPECT_EQ(Context(library, "rdma_lo").device(), "rdma_lo");
}

TEST(VerbsContext, refusal_says_which_devices_there_are) {
  const test::RuntimeFolder folder;
  EXPECT_THAT(refusal([] { Context(Library::open("soft"), "mlx5_0"); }),
              AllOf(HasSubstr("mlx5_0"), HasSubstr("has rdma_lo")));
}

TEST(VerbsContext, answers_questions_with_values_or_errno) {
  const test::Device device;
  EXPECT_EQ(device.context->query_port(1)->state, IBV_PORT_ACTIVE);
  EXPECT_FALSE(device.context->query_port(2));
  EXPECT_EQ(text_of(*device.context->query_gid(1, 1)), "::ffff:127.0.0.1");
  EXPECT_EQ(device.context->query_gid(1, 4000).error().value, EINVAL);
  EXPECT_GT(device.context->query_device()->max_qp, 0);
  EXPECT_EQ(device.context->take_event().error().value, EAGAIN);
}

TEST(VerbsContext, library_without_optional_functions_is_asked_nothing) {
  const test::RuntimeFolder folder;
  Calls calls = Library::open("soft").calls();
  calls.query_device = nullptr;
  calls.get_async_event = nullptr;
  calls.create_comp_channel = nullptr;
  const Context context(Library("sixteen", calls), "");
  EXPECT_EQ(context.query_device().error().value, ENOSYS);
  EXPECT_EQ(context.take_event().error().value, ENOSYS);
  EXPECT_THAT(refusal([&] { CompletionChannel channel(context); }), HasSubstr("poll the completion queue"));
}

TEST(VerbsDomain, refusal_counts_with_who_is_left_behind) {
  const test::Device device("tn3205");
  std::vector<ProtectionDomain> domains;
  const std::string text = refusal([&] {
    for (int i = 0; i < 12; ++i) {
      domains.emplace_back(*device.context);
    }
  });
  EXPECT_EQ(domains.size(), 10U);  // and the device's own
  EXPECT_THAT(text, AllOf(HasSubstr("rdma_lo: ibv_alloc_pd"), HasSubstr("a Mac has 11")));
  domains.clear();
  EXPECT_NO_THROW(ProtectionDomain{*device.context});
}

TEST(VerbsQueue, polls_nothing_when_there_is_nothing) {
  const test::Device device;
  ibv_wc room[4];
  EXPECT_EQ(*device.cq->poll(room), 0U);
  EXPECT_EQ(*device.cq->poll({}), 0U);
}

TEST(VerbsQueue, refusal_names_the_entries) {
  const test::Device device("tn3205");
  EXPECT_THAT(refusal([&] { CompletionQueue(*device.context, 4097); }),
              AllOf(HasSubstr("4097 completions"), HasSubstr("ask for fewer entries")));
}

TEST(VerbsRegion, is_what_was_registered) {
  const test::Device device;
  const Slab slab(*device.pd, 40000);
  const MemoryRegion region(*device.pd, slab.bytes());
  EXPECT_EQ(region.bytes().data(), slab.bytes().data());
  EXPECT_EQ(region.bytes().size(), 40000U);
  const ibv_sge piece = region.piece(4096, 100);
  EXPECT_EQ(piece.addr, reinterpret_cast<uintptr_t>(slab.bytes().data()) + 4096);
  EXPECT_EQ(piece.length, 100U);
  EXPECT_EQ(piece.lkey, region.local_key());
}

TEST(VerbsRegion, refusal_names_place_length_and_remedy) {
  const test::Device device("tn3205");
  const Slab slab(*device.pd, 40000);
  EXPECT_THAT(refusal([&] { MemoryRegion(*device.pd, slab.bytes().subspan(1)); }),
              AllOf(HasSubstr("39999 bytes"), HasSubstr("align it to 16 KiB")));
}

void expect_zeroed(std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes) {
    ASSERT_EQ(byte, std::byte{0});
  }
}

TEST(VerbsSlab, begins_on_a_page_and_is_zeroed_also_when_used_again) {
  const test::Device device;
  for (const size_t length : {size_t{1}, size_t{16384}, size_t{16385}, size_t{1} << 20U}) {
    const Slab slab(*device.pd, length);
    EXPECT_TRUE(slab.is_of_library());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(slab.bytes().data()) % Slab::kPageBytes, 0U);
    ASSERT_EQ(slab.bytes().size(), length);
    expect_zeroed(slab.bytes());
    std::fill(slab.bytes().begin(), slab.bytes().end(), std::byte{0x5a});
  }
}

TEST(VerbsSlab, is_mapped_where_the_library_gives_no_memory) {
  const test::RuntimeFolder folder;
  Calls calls = Library::open("soft").calls();
  calls.alloc_buf = nullptr;
  const Context context(Library("no memory", calls), "");
  const ProtectionDomain pd(context);
  Slab slab(pd, 20000);
  EXPECT_FALSE(slab.is_of_library());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(slab.bytes().data()) % Slab::kPageBytes, 0U);
  expect_zeroed(slab.bytes());
  slab.bytes()[19999] = std::byte{7};
  const Slab moved = std::move(slab);
  EXPECT_EQ(moved.bytes()[19999], std::byte{7});
}

TEST(VerbsSlab, refusal_says_how_much_was_asked) {
  const test::Device device;
  EXPECT_THAT(refusal([&] { Slab(*device.pd, size_t{1} << 60U); }), HasSubstr("1152921504606846976 bytes"));
}

}  // namespace
}  // namespace ringbolt::verbs
