/*-------------------------------------------------------------------------
 *
 * random_inputs.c
 *	  Random inputs for a target of the fuzzer, where there is no libFuzzer.
 *
 * Half of the 64-bit words have few bits, since the boundaries are there.
 *
 *-------------------------------------------------------------------------
 */
#include "c.h"

#define INPUTS	200000

int			LLVMFuzzerTestOneInput(const uint8 *data, size_t size);

static uint64 state = 88172645463325252;

static uint64
next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

int
main(void)
{
	for (int i = 0; i < INPUTS; i++)
	{
		uint64		words[3];

		for (int j = 0; j < 3; j++)
		{
			words[j] = next_random();
			if (next_random() % 2)
				words[j] >>= next_random() % 64;
		}
		LLVMFuzzerTestOneInput((const uint8 *) words, next_random() % (sizeof(words) + 1));
	}
	return 0;
}
