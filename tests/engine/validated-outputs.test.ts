import { expect, it } from 'vitest'
import type { Driver } from '../../src/engine/runs/driver.ts'
import { createValidatedOutputs } from '../../src/engine/runs/validated-outputs.ts'

const driver = {} as Driver
const output = (size: number) => [{ path: 'x', sha256: 'x', bytes: Buffer.alloc(size), executable: 0 }]
const MIB = 1024 * 1024

it('gives what is validated of this very result only', () => {
  const validated = createValidatedOutputs()
  validated.keep(driver, 'one', 'hash', output(1))
  expect(validated.of(driver, 'one', 'hash')).toHaveLength(1)
  expect(validated.of(driver, 'one', 'another')).toBeUndefined()
  expect(validated.of({} as Driver, 'one', 'hash')).toBeUndefined()
})

it('lets go of the oldest when there is too much of it', () => {
  const validated = createValidatedOutputs()
  for (const node of ['one', 'two', 'two', 'three']) validated.keep(driver, node, 'hash', output(3 * MIB))
  expect(validated.of(driver, 'one', 'hash')).toBeUndefined()
  expect(validated.of(driver, 'two', 'hash')).toHaveLength(1)
  expect(validated.of(driver, 'three', 'hash')).toHaveLength(1)
  validated.keep(driver, 'three', 'next', output(9 * MIB))
  for (const node of ['two', 'three']) expect(validated.of(driver, node, 'next')).toBeUndefined()
  validated.keep(driver, 'one', 'hash', output(7 * MIB))
  expect(validated.of(driver, 'one', 'hash')).toHaveLength(1)
})

it('holds no more memory than it counts: what was read beside it is not validated', () => {
  const validated = createValidatedOutputs()
  const part = Buffer.from('part')
  expect(part.buffer.byteLength).toBeGreaterThan(part.length)
  validated.keep(driver, 'one', 'hash', [{ path: 'x', sha256: 'x', bytes: part, executable: 0 }])
  const { bytes } = validated.of(driver, 'one', 'hash')![0]!
  expect(bytes.toString()).toBe('part')
  expect(bytes.buffer.byteLength).toBe(part.length)
})
