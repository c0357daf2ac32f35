import { describe, expect, it } from 'vitest'
import { needsOwnProcess } from './schedule.ts'

// Split, so that the patterns don't match this file itself.
const vi = 'vi'
const spyOn = 'spyOn'
const env = 'env'

describe('a test file gets a process of its own', () => {
  it.each([
    `${vi}.mock('node:fs', async () => ({}))`,
    `${vi}.useFakeTimers({ toFake: ['Date'] })`,
    `${vi}.stubEnv('ORC_TOKEN', 'secret')`,
    `${vi}.${spyOn}(Date, 'now')`,
    `${vi}.${spyOn}(process, 'kill')`,
    `process.${env}.ORC_TOKEN = 'secret'`,
    `process.${env}['ORC_TOKEN'] = 'secret'`,
    `delete process.${env}.ORC_TOKEN`,
    ['process', "chdir('/tmp')"].join('.'),
    ['process', 'memoryUsage().rss'].join('.'),
    ['performance', 'now()'].join('.'),
  ])('for what it replaces, sets or measures: %s', (line) => {
    expect(needsOwnProcess(`it('does', () => {\n  ${line}\n})`)).toBe(true)
  })

  it.each([
    `${vi}.fn()`,
    `${vi}.${spyOn}(service.engine, 'handle')`,
    `${vi}.waitFor(() => expect(seen).toBe(true))`,
    `const path = process.${env}.PATH`,
    `expect(process.${env}.ORC_TOKEN).toBe('x')`,
    `if (process.${env}.CI === undefined) return`,
  ])('but not for what is its own: %s', (line) => {
    expect(needsOwnProcess(`it('does', () => {\n  ${line}\n})`)).toBe(false)
  })
})
