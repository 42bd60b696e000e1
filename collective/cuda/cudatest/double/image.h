// What the double of NVRTC makes and that of libcuda loads: this head, and a
// shared object.
#ifndef EBTRAIN_DOUBLE_IMAGE_H
#define EBTRAIN_DOUBLE_IMAGE_H

#include <stdint.h>

#define IMAGE_MAGIC "ebimage" // with its 0, eight bytes

typedef struct image_head {
	char magic[8];
	uint64_t size; // of the shared object
	uint64_t arch; // compute capability × 10
} image_head;

#endif
