/* Schemas that are wrong. */
#include <errno.h>
#include <string.h>

#include "data.h"

enum {
  kGood,
  kReleased,
  kFormatNull,
  kFormatEmpty,
  kFormatUnknown,
  kFormatNotUtf8,
  kFormatLong,
  kFormatUnfinished,
  kFormatOverflow,
  kNameNull,
  kNameNotUtf8,
  kNameLong,
  kMetadataNegativeCount,
  kMetadataNegativeLength,
  kFlagsUnknown,
  kReleaseForgets,
  kDeep,
  /* From here on with children. */
  kGoodChildren,
  kChildrenNegative,
  kChildrenHuge,
  kChildrenNull,
  kChildNull,
  kChildReleased,
  kChildrenOfPrimitive,
  kCycle
};

static const struct Case kCases[] = {
    {"schema.good", "nothing is wrong", kFletchingHostileAccepted, 0, kGood},
    {"schema.good-children", "nothing is wrong, two children", kFletchingHostileAccepted, 0,
     kGoodChildren},
    {"schema.released", "release is NULL", kFletchingHostileRefused, 0, kReleased},
    {"schema.format-null", "format is NULL", kFletchingHostileRefused, 0, kFormatNull},
    {"schema.format-empty", "format is empty", kFletchingHostileRefused, 0, kFormatEmpty},
    {"schema.format-unknown", "format is \"?\"", kFletchingHostileRefused, 0, kFormatUnknown},
    {"schema.format-not-utf8", "format is not UTF-8", kFletchingHostileRefused, 0, kFormatNotUtf8},
    {"schema.format-long", "format is \"i\", a million times", kFletchingHostileRefused, 0,
     kFormatLong},
    {"schema.format-unfinished", "format is \"w:\"", kFletchingHostileRefused, 0,
     kFormatUnfinished},
    {"schema.format-overflow", "format is \"w:99999999999999999999\"", kFletchingHostileRefused, 0,
     kFormatOverflow},
    {"schema.name-null", "name is NULL, which is the empty name", kFletchingHostileAccepted, 0,
     kNameNull},
    {"schema.name-not-utf8", "name is not UTF-8", kFletchingHostileTolerated, 0, kNameNotUtf8},
    {"schema.name-long", "name has a million bytes", kFletchingHostileAccepted, 0, kNameLong},
    {"schema.metadata-negative-count", "metadata has -1 pairs", kFletchingHostileRefused, 0,
     kMetadataNegativeCount},
    {"schema.metadata-negative-length", "metadata has a key of length -1", kFletchingHostileRefused,
     0, kMetadataNegativeLength},
    {"schema.flags-unknown", "every bit of flags is set", kFletchingHostileTolerated, 0,
     kFlagsUnknown},
    {"schema.release-forgets", "release frees and leaves itself set", kFletchingHostileAccepted, 0,
     kReleaseForgets},
    {"schema.deep", "100,000 lists, one in the other", kFletchingHostileTolerated, 0, kDeep},
    {"schema.children-negative", "n_children is -1", kFletchingHostileRefused, 0,
     kChildrenNegative},
    {"schema.children-huge", "n_children is INT64_MAX, children is NULL", kFletchingHostileRefused,
     0, kChildrenHuge},
    {"schema.children-null", "n_children is 2, children is NULL", kFletchingHostileRefused, 0,
     kChildrenNull},
    {"schema.child-null", "the second child is NULL", kFletchingHostileRefused, 0, kChildNull},
    {"schema.child-released", "the second child is released", kFletchingHostileRefused, 0,
     kChildReleased},
    {"schema.children-of-primitive", "format is \"i\", n_children is INT64_MAX",
     kFletchingHostileRefused, 0, kChildrenOfPrimitive},
    {"schema.cycle", "the first child is a list of itself", kFletchingHostileRefused, 0, kCycle},
};

const struct Party kSchemaParty = {kFletchingHostileSchema, sizeof kCases / sizeof kCases[0],
                                   kCases};

static void MakeCycle(struct ArrowSchema* schema) {
  struct ArrowSchema* child = schema->children[0];
  child->format = "+l";
  child->n_children = 1;
  child->children = schema->children; /* whose first is the child */
}

static void Spoil(int32_t behaviour, struct ArrowSchema* schema) {
  switch (behaviour) {
    case kReleased:
      schema->release(schema);
      break;
    case kFormatNull:
      schema->format = NULL;
      break;
    case kFormatEmpty:
      schema->format = "";
      break;
    case kFormatUnknown:
      schema->format = "?";
      break;
    case kFormatNotUtf8:
      schema->format = kNotUtf8;
      break;
    case kFormatLong:
      schema->format = LongText('i');
      break;
    case kFormatUnfinished:
      schema->format = "w:";
      break;
    case kFormatOverflow:
      schema->format = "w:99999999999999999999";
      break;
    case kNameNull:
      schema->name = NULL;
      break;
    case kNameNotUtf8:
      schema->name = kNotUtf8;
      break;
    case kNameLong:
      schema->name = LongText('x');
      break;
    case kMetadataNegativeCount:
      schema->metadata = (const char*)kNegativeCount;
      break;
    case kMetadataNegativeLength:
      schema->metadata = (const char*)kNegativeLength;
      break;
    case kFlagsUnknown:
      schema->flags = -1;
      break;
    case kReleaseForgets:
      schema->release = ReleaseSchemaAndForget;
      break;
    case kChildrenNegative:
      schema->n_children = -1;
      break;
    case kChildrenHuge:
      schema->n_children = INT64_MAX;
      schema->children = NULL;
      break;
    case kChildrenNull:
      schema->children = NULL;
      break;
    case kChildNull:
      schema->children[1] = NULL;
      break;
    case kChildReleased:
      ReleaseSchemaChildInPlace(schema->children[1]);
      break;
    case kChildrenOfPrimitive:
      schema->format = "i";
      schema->n_children = INT64_MAX;
      break;
    case kCycle:
      MakeCycle(schema);
      break;
    default:
      break;
  }
}

int FletchingHostileExportSchema(const char* name, struct ArrowSchema* out,
                                 struct FletchingMessage* message) {
  const struct Case* found = FindCase(&kSchemaParty, name, message);
  if (found == NULL) return EINVAL;
  if (out == NULL) return Fail(message, EINVAL, "out is NULL");
  const int32_t behaviour = found->behaviour;
  const int made =
      behaviour == kDeep ? MakeDeepSchema(out) : MakeSchema(behaviour >= kGoodChildren, out);
  if (made != 0) return Fail(message, made, "out of memory");
  Spoil(behaviour, out);
  return 0;
}
