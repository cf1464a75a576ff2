// The Vulkan kernel: inverts every bit of `words` 4-byte words.
#version 450

layout(local_size_x = 64) in;

layout(std430, set = 0, binding = 0) buffer Data { uint word[]; } data;
layout(push_constant) uniform Arguments { uint words; };

void main() {
  const uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  for (uint i = gl_GlobalInvocationID.x; i < words; i += step) data.word[i] = ~data.word[i];
}
