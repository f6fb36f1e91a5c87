#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "bootstrap/jaccl_devices.h"
#include "bootstrap/mlx_hostfile.h"

namespace ringbolt::bootstrap {
namespace {

using ::testing::HasSubstr;

std::string refusal_of(std::string_view text) {
  const auto devices = parse_jaccl_devices(text);
  return devices ? "" : devices.error().text();
}

TEST(JacclDevices, reads_every_form_of_a_cell) {
  const auto devices = parse_jaccl_devices(R"([[null, "rdma_en2", ["rdma_en3", "rdma_en4"]],
      [["rdma_en2"], null, null], [["rdma_en5", "rdma_en6"], null, null]])");
  ASSERT_TRUE(devices) << devices.error().text();
  EXPECT_EQ(devices->n_ranks(), 3U);
  EXPECT_EQ(devices->cells[0][1], std::vector<std::string>{"rdma_en2"});
  EXPECT_EQ(devices->cells[0][2], (std::vector<std::string>{"rdma_en3", "rdma_en4"}));
  EXPECT_TRUE(devices->cells[1][2].empty());
  EXPECT_EQ(to_text(*devices),
            "[[null, \"rdma_en2\", [\"rdma_en3\",\"rdma_en4\"]],\n [\"rdma_en2\", null, null],\n "
            "[[\"rdma_en5\",\"rdma_en6\"], null, null]]\n");
  EXPECT_EQ(parse_jaccl_devices(to_text(*devices)).value(), *devices);
  EXPECT_TRUE(warnings(*devices).empty());
}

TEST(JacclDevices, refusals_name_the_place) {
  EXPECT_THAT(refusal_of(R"([[null, "a"]])"), HasSubstr("[0]: is no list of 1 cells"));
  EXPECT_THAT(refusal_of(R"([[null, "a"], ["b"]])"), HasSubstr("[1]: is no list of 2 cells"));
  EXPECT_THAT(refusal_of(R"([["a", "a"], ["b", null]])"), HasSubstr("[0][0]: must be null"));
  EXPECT_THAT(refusal_of(R"([[null, ["a", "b"]], ["b", null]])"), HasSubstr("[0][1]: has 2 devices, and [1][0] has 1"));
  EXPECT_THAT(refusal_of(R"([[null, "a"], [null, null]])"), HasSubstr("[0][1]: has 1 devices, and [1][0] has 0"));
  EXPECT_THAT(refusal_of(R"([[null, null], [null, null]])"), HasSubstr("all cells are null"));
  EXPECT_THAT(refusal_of(R"([[null, []], [[], null]])"), HasSubstr("[0][1]: is no list of 1 to 64"));
  EXPECT_THAT(refusal_of(R"([[null, 7], [7, null]])"), HasSubstr("[0][1]: is neither null"));
  EXPECT_THAT(refusal_of(R"([[null, ["a", 7]], ["b", null]])"), HasSubstr("[0][1][1]: is no text"));
  EXPECT_THAT(refusal_of(R"([[null, "a b"], ["b", null]])"), HasSubstr("[0][1]: \"a b\" is no word"));
  EXPECT_THAT(refusal_of(R"([[null, ""], ["b", null]])"), HasSubstr("[0][1]: \"\" is no word"));
  EXPECT_THAT(refusal_of(R"([[null, [["a"]]], ["b", null]])"), HasSubstr("nested deeper"));
  EXPECT_THAT(refusal_of("[]"), HasSubstr("1 to 1024"));
  EXPECT_THAT(refusal_of("{}"), HasSubstr("1 to 1024"));
  EXPECT_THAT(refusal_of("[[null,\n\"a\""), HasSubstr("line 2: no JSON"));
  EXPECT_THAT(refusal_of(std::string(kMaxMlxFileBytes + 1, ' ')), HasSubstr("longer"));
}

TEST(JacclDevices, warns_of_a_device_that_leads_to_two_places) {
  const auto devices = parse_jaccl_devices(R"([[null, "a", "a"], ["a", null, "b"], ["a", "b", null]])");
  ASSERT_TRUE(devices);
  ASSERT_EQ(warnings(*devices).size(), 1U);
  EXPECT_THAT(warnings(*devices)[0], HasSubstr("[0][2]: a occurs twice among the devices of rank 0"));
}

TEST(MlxHostfile, reads_both_versions) {
  const auto object = parse_mlx_hostfile(R"({"backend": "jaccl", "envs": ["A=1", "B=x=y"], "hosts": [
      {"ssh": "a", "ips": ["10.0.0.1", "fd77::1"], "rdma": [null, "rdma_en2"]},
      {"ssh": "b@c", "rdma": [["rdma_en3"], null]}]})");
  ASSERT_TRUE(object) << object.error().text();
  EXPECT_EQ(object->coordinator().value(), (HostPort{"10.0.0.1", 32323}));
  EXPECT_EQ(object->devices()->cells[1][0], std::vector<std::string>{"rdma_en3"});
  EXPECT_EQ(object->envs[1], "B=x=y");
  EXPECT_EQ(parse_mlx_hostfile(to_text(*object)).value(), *object);
  const auto list = parse_mlx_hostfile(R"([{"ssh": "a"}, {"ssh": "b", "ips": []}])");
  ASSERT_TRUE(list) << list.error().text();
  EXPECT_FALSE(list->is_object);
  EXPECT_FALSE(list->coordinator());
  EXPECT_FALSE(list->devices());
  EXPECT_EQ(to_text(*list), "[\n  {\"ssh\":\"a\"},\n  {\"ssh\":\"b\"}\n]\n");
  EXPECT_EQ(parse_mlx_hostfile(to_text(*list)).value(), *list);
}

TEST(MlxHostfile, reads_what_mlx_writes_without_devices) {
  // mlx.distributed_config --over ethernet, and without --backend.
  const auto file = parse_mlx_hostfile(R"({
    "backend": "",
    "envs": [],
    "hosts": [
        {
            "ssh": "m1",
            "ips": [
                "10.0.0.1"
            ],
            "rdma": []
        },
        {
            "ssh": "m2",
            "ips": [
                "10.0.0.2"
            ],
            "rdma": []
        }
    ]
})");
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ(file->backend, "");
  EXPECT_FALSE(file->devices());
  EXPECT_EQ(file->coordinator().value(), (HostPort{"10.0.0.1", 32323}));
  EXPECT_EQ(to_text(*file),
            "{\n  \"backend\": \"\",\n  \"envs\": [],\n  \"hosts\": [\n    {\"ssh\":\"m1\",\"ips\":[\"10.0.0.1\"]},\n"
            "    {\"ssh\":\"m2\",\"ips\":[\"10.0.0.2\"]}\n  ]\n}\n");
  EXPECT_EQ(parse_mlx_hostfile(to_text(*file)).value(), *file);
  const auto ring = parse_mlx_hostfile(R"({"backend": "ring", "envs": ["A=1"], "hosts": [{"ssh": "a", "rdma": []}]})");
  ASSERT_TRUE(ring) << ring.error().text();
  EXPECT_EQ(parse_mlx_hostfile(to_text(*ring)).value(), *ring);
}

TEST(MlxHostfile, of_one_rank_needs_no_devices) {
  for (const char* text : {R"({"backend": "jaccl", "hosts": [{"ssh": "a", "rdma": [null]}]})",
                           R"({"backend": "jaccl", "hosts": [{"ssh": "a", "rdma": []}]})",
                           R"({"backend": "jaccl", "hosts": [{"ssh": "a"}]})"}) {
    const auto file = parse_mlx_hostfile(text);
    ASSERT_TRUE(file) << text << file.error().text();
    EXPECT_EQ(parse_mlx_hostfile(to_text(*file)).value(), *file);
  }
  const auto alone = parse_jaccl_devices("[[null]]");
  ASSERT_TRUE(alone) << alone.error().text();
  EXPECT_EQ(to_text(*alone), "[[null]]\n");
  EXPECT_EQ(parse_jaccl_devices(to_text(*alone)).value(), *alone);
  EXPECT_THAT(refusal_of("[[\"a\"]]"), HasSubstr("[0][0]: must be null"));
}

TEST(MlxHostfile, refusals_name_the_place) {
  const auto refusal = [](std::string_view text) {
    const auto file = parse_mlx_hostfile(text);
    return file ? "" : file.error().text();
  };
  EXPECT_THAT(refusal(R"([{"ips": []}])"), HasSubstr("hosts[0]: field \"ssh\" is missing"));
  EXPECT_THAT(refusal(R"([{"ssh": "a", "user": "b"}])"), HasSubstr("hosts[0]: unknown field \"user\""));
  EXPECT_THAT(refusal(R"([{"ssh": "a", "ssh": "b"}])"), HasSubstr("field \"ssh\" occurs twice"));
  EXPECT_THAT(refusal(R"([{"ssh": "a", "ips": ["1", 2]}])"), HasSubstr("hosts[0].ips[1]: is no text"));
  EXPECT_THAT(refusal(R"([{"ssh": "a", "rdma": [null, 3]}, {"ssh": "b"}])"), HasSubstr("hosts[0].rdma[1]: is neither"));
  EXPECT_THAT(refusal(R"([{"ssh": "a", "rdma": [null]}, {"ssh": "b"}])"),
              HasSubstr("hosts[0].rdma: is no list of 2 to 2"));
  EXPECT_THAT(refusal(R"([{"ssh": "a", "rdma": [null, "x"]}, {"ssh": "b"}])"),
              HasSubstr("hosts[1]: field \"rdma\" is missing"));
  EXPECT_THAT(refusal(R"([{"ssh": "a", "rdma": [null, "x"]}, {"ssh": "b", "rdma": [null, null]}])"),
              HasSubstr("hosts[0].rdma[1]: has 1 devices, and hosts[1].rdma[0] has 0"));
  EXPECT_THAT(refusal(R"({"backend": "jaccl-ring", "hosts": [{"ssh": "a"}, {"ssh": "b"}]})"),
              HasSubstr("backend \"jaccl-ring\" needs"));
  EXPECT_THAT(refusal(R"({"backend": "jaccl", "hosts": [{"ssh": "a", "rdma": []}, {"ssh": "b", "rdma": []}]})"),
              HasSubstr("hosts[0]: field \"rdma\" is missing or empty, and backend \"jaccl\" needs it"));
  EXPECT_THAT(refusal(R"([{"ssh": "a", "rdma": [null, "x"]}, {"ssh": "b", "rdma": []}])"),
              HasSubstr("hosts[1]: field \"rdma\" is missing or empty"));
  EXPECT_THAT(refusal(R"([{"ssh": "a", "rdma": ["x"]}])"), HasSubstr("hosts[0].rdma[0]: must be null"));
  EXPECT_THAT(refusal(R"({"backend": "jaccl", "envs": ["A"], "hosts": []})"),
              HasSubstr("envs[0]: \"A\" is no NAME=VALUE"));
  EXPECT_THAT(refusal(R"({"hosts": []})"), HasSubstr("hosts: is no list of 1"));
  EXPECT_THAT(refusal(R"({"backend": "ring"})"), HasSubstr("field \"hosts\" is missing"));
  EXPECT_THAT(refusal("7"), HasSubstr("hosts: is no list"));
}

TEST(MlxRingfile, reads_and_writes) {
  const auto file = parse_mlx_ringfile(R"([["10.0.0.1:32323", "[fd77::1]:4"], ["10.0.0.2:32324"]])");
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ(file->ranks[0][1], (HostPort{"fd77::1", 4}));
  EXPECT_EQ(to_text(*file), "[\n  [\"10.0.0.1:32323\",\"[fd77::1]:4\"],\n  [\"10.0.0.2:32324\"]\n]\n");
  EXPECT_EQ(parse_mlx_ringfile(to_text(*file)).value(), *file);
  EXPECT_THAT(parse_mlx_ringfile(R"([["10.0.0.1:1"], ["x"]])").error().text(),
              HasSubstr("[1][0]: \"x\" is no HOST:PORT"));
  EXPECT_THAT(parse_mlx_ringfile(R"([["10.0.0.1:1"], []])").error().text(), HasSubstr("[1]: is no list"));
}

}  // namespace
}  // namespace ringbolt::bootstrap
