import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openDirectory } from '../../src/workspaces/directory.ts'
import { beginInbox, createWorkspace, prepareInbox } from '../../src/workspaces/folder.ts'
import { DEFAULT_LIMITS } from '../../src/workspaces/limits.ts'
import { checkInbox, type Manifest } from '../../src/workspaces/manifest.ts'
import { type Stamps, startStamping } from '../../src/workspaces/stamps.ts'
import { expectOk, handOver, instructions, makePlace, makeWorkspace, write } from './place.ts'

/** Not the folder for temporary files, which may be in memory, where there are no stamps to rely on. */
const DISK = join(import.meta.dirname, '../../.cache')
mkdirSync(DISK, { recursive: true })

const limits = DEFAULT_LIMITS

function hasStamps(within: string): boolean {
  const folder = mkdtempSync(join(within, 'orchub-stamps-'))
  const directory = openDirectory(folder)
  try {
    return startStamping(directory) !== undefined
  } finally {
    directory.close()
    rmSync(folder, { recursive: true })
  }
}

async function prepare(within: string) {
  const place = makePlace(within)
  const [from, to] = [await makeWorkspace('maker', place), await makeWorkspace('user', place)]
  write(join(from, 'outbox'), { a: '1', 'b/c': '2', large: '12345678' })
  const { manifest, stamps } = expectOk(await handOver(from, to, ['outbox/**'], { inlineBytes: 4 }))
  return { to, manifest, stamps, inbox: join(to, 'inbox/from') }
}

const check = async (to: string, manifest: Manifest, stamps?: Stamps) =>
  expectOk(await checkInbox(to, manifest, { limits, stamps }))

/** As only its owner can. */
function overwrite(file: string) {
  chmodSync(file, 0o644)
  writeFileSync(file, readFileSync(file, 'utf8').replaceAll(/./g, 'X'))
}

function keepingTimes(file: string, change: (file: string) => void) {
  const { atime, mtime } = statSync(file)
  change(file)
  utimesSync(file, atime, mtime)
}

function unlocked(folder: string, change: () => void) {
  chmodSync(folder, 0o755)
  change()
  chmodSync(folder, 0o555)
}

const CHANGES: Record<string, (inbox: string) => void> = {
  'a file is written over': (inbox) => overwrite(join(inbox, 'a')),
  'a file is written over and given its old times': (inbox) => keepingTimes(join(inbox, 'a'), overwrite),
  'a file is exchanged for one of the same size and times': (inbox) =>
    unlocked(inbox, () =>
      keepingTimes(join(inbox, 'a'), (file) => {
        rmSync(file)
        writeFileSync(file, 'X')
      }),
    ),
  'a link to a folder that was moved is in its place': (inbox) =>
    unlocked(join(inbox, '..'), () => {
      renameSync(inbox, `${inbox}-moved`)
      symlinkSync(`${inbox}-moved`, inbox)
    }),
  'a file is added deep inside': (inbox) =>
    unlocked(join(inbox, 'b'), () => writeFileSync(join(inbox, 'b/new'), '')),
  'a file is removed': (inbox) => unlocked(inbox, () => rmSync(join(inbox, 'a'))),
  'a reference is written over': (inbox) => overwrite(join(inbox, '../../../maker/outbox/large')),
}

describe.each([
  ['on disk', DISK],
  ['among temporary files', tmpdir()],
])('an inbox %s (C21)', (_, within) => {
  it('is known to be as it was', async () => {
    const { to, manifest, stamps } = await prepare(within)
    expect(await check(to, manifest, stamps)).toEqual([])
  })

  it.each(Object.keys(CHANGES))('is known to be changed however soon: %s', async (what) => {
    // Right after it was filled, where a clock that ticks would still show the same time.
    for (let times = 0; times < 5; times++) {
      const { to, manifest, stamps, inbox } = await prepare(within)
      CHANGES[what]!(inbox)
      expect(await check(to, manifest, stamps)).not.toEqual([])
    }
  })

  it('is known to be changed before it was whole', async () => {
    const workspace = join(makePlace(within), 'next')
    const wanted = { workspace, task: 't', instructions, limits, isNew: true }
    expectOk(
      await createWorkspace({
        path: workspace,
        name: 'next',
        template: 'generic',
        objective: 'x',
        withoutInbox: true,
      }),
    )
    const begun = expectOk(await beginInbox(wanted))
    const draft = join(workspace, readdirSync(workspace).find((name) => name.startsWith('.inbox.'))!)
    chmodSync(join(draft, 'instructions.md'), 0o644)
    appendFileSync(join(draft, 'instructions.md'), 'And more.')
    writeFileSync(join(draft, 'extra.md'), '')
    const { manifest, stamps } = expectOk(await prepareInbox(wanted, begun))
    expect(await check(workspace, manifest, stamps)).toEqual([
      { path: 'extra.md', change: 'added' },
      { path: 'instructions.md', change: 'changed' },
    ])
  })

  it('may have other modes and times, as long as its content is the same', async () => {
    const { to, manifest, stamps, inbox } = await prepare(within)
    chmodSync(join(inbox, 'a'), 0o644)
    utimesSync(join(inbox, 'b/c'), 1, 1)
    expect(await check(to, manifest, stamps)).toEqual([])
  })

  it.skipIf(!hasStamps(within))('is not read where its stamps are as they were', async () => {
    const { to, manifest, stamps } = await prepare(within)
    const copies = manifest.inputs.filter(({ reference }) => reference === undefined)
    const other = { ...manifest, inputs: copies.map((input) => ({ ...input, sha256: '' })) }
    expect(await check(to, other, stamps)).toEqual([])
    expect(await check(to, other)).toHaveLength(copies.length)
  })
})
