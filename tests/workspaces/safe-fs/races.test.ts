import { execFileSync } from 'node:child_process'
import type * as FileSystem from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { collectOutbox } from '../../../src/workspaces/outbox.ts'
import { allText, makePlace, write } from '../harness.ts'

/**
 * An agent may exchange anything at any moment. So the same copy is made again and again, and each time something is
 * exchanged after another one of the calls to the file system that it consists of: no moment is left to chance.
 */
const race = vi.hoisted(() => ({
  calls: 0,
  at: 0,
  exchange: undefined as (() => void) | undefined,
  byPath: false,
}))

vi.mock('node:fs', async (importOriginal) => {
  const original = await importOriginal<typeof FileSystem>()
  const watched = [
    'lstatSync',
    'fstatSync',
    'openSync',
    'opendirSync',
    'readSync',
    'writeSync',
    'mkdirSync',
    'renameSync',
  ] as const
  const wrap =
    (name: (typeof watched)[number]) =>
    (...args: never[]) => {
      try {
        return (original[name] as (...args: never[]) => unknown)(...args)
      } finally {
        if (race.exchange !== undefined && ++race.calls === race.at) {
          const { exchange } = race
          race.exchange = undefined
          exchange()
        }
      }
    }
  const existsSync = (path: FileSystem.PathLike) =>
    original.existsSync(path) && !(race.byPath && path === '/proc/self/fd')
  return { ...original, existsSync, ...Object.fromEntries(watched.map((name) => [name, wrap(name)])) }
})

const fs = await vi.importActual<typeof FileSystem>('node:fs')

/** Thousands of copies need no disk. Where there is no such folder, it takes longer. */
const MEMORY = fs.existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

interface Scene {
  place: string
  from: string
  to: string
  outbox: string
  /** Puts something made by the given function in the place of what is there. */
  swap(path: string, make: (path: string) => void): void
}

function makeScene(): Scene {
  const place = makePlace(MEMORY)
  write(place, { 'secret.txt': 'SECRET', 'secrets/key': 'SECRET', 'secrets/deep/key': 'SECRET' })
  const [from, to] = [join(place, 'maker'), join(place, 'user')]
  write(from, { 'outbox/data/deep/key': 'good', 'outbox/key': 'good', 'outbox/summary.md': 'good' })
  fs.mkdirSync(to)
  const swap = (path: string, make: (path: string) => void) => {
    if (!fs.existsSync(path)) return
    fs.renameSync(path, join(place, 'moved'))
    make(path)
  }
  return { place, from, to, outbox: join(from, 'outbox'), swap }
}

/** Made many at once: a process for each would take longer than the copy. */
let pipes: string[] = []
function takePipe(): string {
  if (pipes.length === 0) {
    const place = makePlace(MEMORY)
    pipes = Array.from({ length: 500 }, (_, index) => join(place, `pipe-${index}`))
    execFileSync('mkfifo', pipes)
  }
  return pipes.pop()!
}

const link = (to: string) => (path: string) => fs.symlinkSync(to, path)

const EXCHANGES: Record<string, (scene: Scene) => void> = {
  'a file for a link': ({ place, outbox, swap }) =>
    swap(join(outbox, 'key'), link(join(place, 'secret.txt'))),
  'a file for another name of one': ({ place, outbox, swap }) =>
    swap(join(outbox, 'key'), (path) => fs.linkSync(join(place, 'secret.txt'), path)),
  'a file for a pipe': ({ outbox, swap }) =>
    swap(join(outbox, 'key'), (path) => fs.renameSync(takePipe(), path)),
  'a file for a folder': ({ outbox, swap }) => swap(join(outbox, 'key'), (path) => fs.mkdirSync(path)),
  'a folder for a link': ({ place, outbox, swap }) =>
    swap(join(outbox, 'data'), link(join(place, 'secrets'))),
  'an inner folder for a link': ({ place, outbox, swap }) =>
    swap(join(outbox, 'data/deep'), link(join(place, 'secrets/deep'))),
  'the outbox for a link': ({ place, outbox, swap }) => swap(outbox, link(join(place, 'secrets'))),
  'the inbox in the making for a link': ({ place, to, swap }) => {
    const draft = fs.readdirSync(to).find((name) => name.startsWith('.inbox.'))
    if (draft !== undefined) swap(join(to, draft), link(join(place, 'secrets')))
  },
  'a folder of the inbox in the making for a link': ({ place, to, swap }) => {
    const draft = fs.readdirSync(to).find((name) => name.startsWith('.inbox.'))
    if (draft !== undefined) swap(join(to, draft, 'from/data'), link(join(place, 'secrets')))
  },
}

beforeEach(() => {
  pipes = []
  race.byPath = false
  race.exchange = undefined
})

async function countCalls(work: (scene: Scene) => Promise<unknown>): Promise<number> {
  const scene = makeScene()
  Object.assign(race, { calls: 0, at: -1, exchange: () => {} })
  await work(scene)
  return race.calls
}

/** Whether an open folder can be part of a path is found out when the modules are loaded. */
async function loadCopy(byPath: boolean) {
  race.byPath = byPath
  vi.resetModules()
  const { handOver } = await import('../harness.ts')
  return handOver
}

const byDescriptor = Object.entries(EXCHANGES).map(([what, exchange]) => [what, exchange, false] as const)
const byPath = Object.entries(EXCHANGES)
  .filter(([what]) => /^a(n inner)? (file|folder) for a link|^the outbox/.test(what))
  .map(([what, exchange]) => [`${what}, where files are reached by path`, exchange, true] as const)

describe.each([...byDescriptor, ...byPath])('while an agent exchanges %s', (_, exchange, isByPath) => {
  it('a copy holds only what was in the outbox, and nothing outside is touched', {
    timeout: 120_000,
  }, async () => {
    const handOver = await loadCopy(isByPath)
    const calls = await countCalls(({ from, to }) => handOver(from, to))
    expect(calls).toBeGreaterThan(30)
    for (let at = 1; at <= calls; at++) {
      const scene = makeScene()
      Object.assign(race, { calls: 0, at, exchange: () => exchange(scene) })
      const handed = await handOver(scene.from, scene.to).catch((error: unknown) => error as Error)
      race.exchange = undefined
      if (handed instanceof Error) throw new Error(`after call ${at}`, { cause: handed })
      expect(allText(scene.to), `after call ${at}`).not.toContain('SECRET')
      expect(allText(join(scene.place, 'secrets')), `after call ${at}`).toBe('SECRET\nSECRET')
    }
  })
})

describe('while an agent exchanges its summary for a link', () => {
  it('no secret is collected', async () => {
    const work = ({ from }: Scene) => collectOutbox(from, { content: true })
    const calls = await countCalls(work)
    for (let at = 1; at <= calls; at++) {
      const scene = makeScene()
      const { place, outbox, swap } = scene
      const exchange = () => swap(join(outbox, 'summary.md'), link(join(place, 'secret.txt')))
      Object.assign(race, { calls: 0, at, exchange })
      expect(JSON.stringify(await work(scene))).not.toContain('SECRET')
    }
  })
})
