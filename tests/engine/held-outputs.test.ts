import { expect, it } from 'vitest'
import type { Driver } from '../../src/engine/runs/driver.ts'
import { createHeldOutputs } from '../../src/engine/runs/held-outputs.ts'

const driver = {} as Driver
const output = (size: number) => [{ path: 'x', sha256: 'x', bytes: Buffer.alloc(size), executable: 0 }]
const MIB = 1024 * 1024

it('gives what is held of this very result only', () => {
  const held = createHeldOutputs()
  held.hold(driver, 'one', 'hash', output(1))
  expect(held.of(driver, 'one', 'hash')).toHaveLength(1)
  expect(held.of(driver, 'one', 'another')).toBeUndefined()
  expect(held.of({} as Driver, 'one', 'hash')).toBeUndefined()
})

it('lets go of the oldest when there is too much of it', () => {
  const held = createHeldOutputs()
  for (const node of ['one', 'two', 'two', 'three']) held.hold(driver, node, 'hash', output(3 * MIB))
  expect(held.of(driver, 'one', 'hash')).toBeUndefined()
  expect(held.of(driver, 'two', 'hash')).toHaveLength(1)
  expect(held.of(driver, 'three', 'hash')).toHaveLength(1)
  held.hold(driver, 'three', 'next', output(9 * MIB))
  for (const node of ['two', 'three']) expect(held.of(driver, node, 'next')).toBeUndefined()
  held.hold(driver, 'one', 'hash', output(7 * MIB))
  expect(held.of(driver, 'one', 'hash')).toHaveLength(1)
})

it('holds no more memory than it counts: what was read beside it is not held', () => {
  const held = createHeldOutputs()
  const part = Buffer.from('part')
  expect(part.buffer.byteLength).toBeGreaterThan(part.length)
  held.hold(driver, 'one', 'hash', [{ path: 'x', sha256: 'x', bytes: part, executable: 0 }])
  const { bytes } = held.of(driver, 'one', 'hash')![0]!
  expect(bytes.toString()).toBe('part')
  expect(bytes.buffer.byteLength).toBe(part.length)
})
