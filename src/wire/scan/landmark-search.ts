import { type FindLandmarks, findLandmarksPlainly } from './landmark.ts'
import { openKernel } from './wasm/kernel.ts'

/**
 * Finding landmarks, and counting lines on the way, is all that is done with most of a stream. So it runs at the speed
 * of memory: in WebAssembly, 16 bytes at a time, where there is WebAssembly.
 */
export const findLandmarks: FindLandmarks = openKernel() ?? findLandmarksPlainly
