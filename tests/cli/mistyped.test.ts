import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { wrapped } from '../../src/cli/output/layout.ts'
import { problemOf } from '../../src/workspaces/problem.ts'
import { createTeamFolder, ENTRY, type TeamFolder } from './orc.ts'

let team: TeamFolder

beforeEach(() => {
  team = createTeamFolder()
})
afterEach(() => team.close())

describe('a typo', () => {
  it('in a verb of two words suggests the right one', async () => {
    await team.fails('run shwo run_1', 2, 'Did you mean run show?')
  })

  it('in the name of an agent suggests the nearest name before listing all', async () => {
    await team.start()
    const near = await team.orc(['send-message', '--from', 'Master', '--to', 'Wroker', 'Hello'])
    expect(near.err).toContain('Did you mean "Worker"? Valid agents: Master, Worker, Spy.')
    expect((await team.orc('mailbox-check --agent Wroker')).err).toContain('Did you mean "Worker"?')
    expect((await team.orc('mailbox-check --agent Nobody')).err).not.toContain('Did you mean')
  })

  it('in the name of a GitHub event is refused', async () => {
    writeFileSync(join(team.folder, 'opened.json'), '{}')
    const slip = await team.orc('github replay opened.json --event isues --dry-run')
    expect(slip).toMatchObject({ code: 2, out: '' })
    expect(slip.err).toContain('GitHub has no event "isues"')
    expect(slip.err).toContain('Did you mean issues?')
    await team.fails('github replay opened.json --event issues.opened --dry-run', 2, 'Did you mean issues?')
  })

  it('in the name of a shell lists the shells and nothing else', async () => {
    const { code, err } = await team.orc('completion tcsh')
    expect(code).toBe(2)
    expect(err).toContain('SHELL must be one of: bash, zsh, fish (got "tcsh")')
    expect((await team.orc('completion agents')).out).toBe('Master\nWorker\nSpy\n')
  })
})

describe('a hint', () => {
  it('for an unknown message says how to list messages', async () => {
    await team.start()
    await team.fails('message msg_99', 7, '`orc message list` lists them.')
  })

  it('for an agent outside Orchub suggests only commands that work', async () => {
    await team.start()
    for (const verb of ['attach', 'logs']) {
      const { code, err } = await team.orc(`${verb} Spy`)
      expect(code).toBe(1)
      expect(err).not.toContain('orc agent start')
      expect(err).toContain('runtime none')
    }
  })
})

describe('orc mailbox-check', () => {
  it('prints a message without a title once, and one with a title below it', async () => {
    await team.start()
    await team.orc(['send-message', '--from', 'Master', '--to', 'Worker', 'Add 2 and 3'])
    await team.orc(['send-message', '--from', 'Master', '--to', 'Worker', '--title', 'Sum', 'Add 4 and 5'])
    const { out } = await team.orc('mailbox-check --agent Worker')
    expect(out.match(/Add 2 and 3/g)).toHaveLength(1)
    expect(out).toMatch(/^msg_2 .* Sum\n {4}Add 4 and 5$/m)
  })
})

/** Runs a command with a read-only folder, in a mount namespace of its own. */
const MOUNT = ['-rm', 'sh', '-c', 'mount -t tmpfs -o ro none "$0" && exec "$@"']
/** Makes the working folder and its contents read-only. */
const BIND = [
  '-rm',
  'sh',
  '-c',
  'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && cd "$0" && exec "$@"',
]
/** Runs orc in such a namespace. */
function orcIn(namespace: readonly string[], folder: string, args: string, env?: Record<string, string>) {
  const orc = [process.execPath, ENTRY, ...args.split(' ')]
  return spawnSync('unshare', [...namespace, folder, ...orc], {
    ...{ encoding: 'utf8', timeout: 20_000 },
    env: env === undefined ? process.env : { PATH: process.env.PATH, ...env },
  })
}
const canMount = spawnSync('unshare', [...MOUNT, tmpdir(), 'true']).status === 0
const canBind = spawnSync('unshare', [...BIND, tmpdir(), 'true']).status === 0

describe('a read-only file system', () => {
  it('is named in the error', () => {
    const refusal = Object.assign(new Error('EROFS'), { code: 'EROFS' })
    expect(problemOf(refusal, 'here/me').message).toBe(
      'here/me cannot be written: the file system is read-only',
    )
  })

  it.runIf(canMount)('is named by orc workspace create, however deep', () => {
    for (const path of ['me', 'new/and/me']) {
      const args = `workspace create ${join(team.folder, path)}`
      const { status, stderr } = orcIn(MOUNT, team.folder, args)
      expect(status).toBe(1)
      expect(stderr).toContain('the file system is read-only')
      expect(stderr).not.toContain('another name')
    }
  })

  it.runIf(canBind)('is named by orc workspace dissolve, and nothing is removed', async () => {
    await team.orc('workspace create me')
    const { status, stderr } = orcIn(BIND, team.folder, 'workspace dissolve me')
    expect(stderr).toContain(`${join(team.folder, 'me')} cannot be removed: the file system is read-only`)
    expect(stderr).toContain('Nothing was removed')
    expect(status).toBe(1)
  })

  it.runIf(canMount)('mounted inside a workspace keeps it from being dissolved', async () => {
    await team.orc('workspace create me')
    const inside = join(team.folder, 'me/mounted here')
    mkdirSync(inside)
    for (const option of ['', ' --force']) {
      const args = `workspace dissolve ${join(team.folder, 'me')}${option}`
      const { status, stderr } = orcIn(MOUNT, inside, args)
      expect(stderr).toContain(`${inside} cannot be removed: something is mounted there`)
      expect(stderr).toContain('Nothing was removed')
      expect(status).toBe(1)
    }
    expect(existsSync(join(team.folder, 'me/status.json'))).toBe(true)
    expect(existsSync(join(team.folder, 'me.report.md'))).toBe(false)
  })

  it.runIf(canBind)('is named by every command that needs a state folder', () => {
    const alone = mkdtempSync(join(tmpdir(), 'orchub-read-only-'))
    try {
      for (const folder of [alone, team.folder]) {
        writeFileSync(join(folder, 'plan.yaml'), 'agents: { a: { command: "true" } }\n')
      }
      const deep = { ORC_HOME: join(team.folder, 'new/and/deep') }
      for (const [cwd, line, env] of [
        [alone, 'run plan.yaml', {}],
        [team.folder, 'run plan.yaml', {}],
        [team.folder, 'run plan.yaml', deep],
        [team.folder, 'serve', deep],
        [team.folder, 'up', deep],
        [team.folder, 'up --detach', deep],
      ] as const) {
        const { status, stderr } = orcIn(BIND, cwd, line, { HOME: alone, ...env })
        expect(stderr, line).toContain('the file system is read-only')
        expect(status, line).toBe(1)
      }
    } finally {
      rmSync(alone, { recursive: true })
    }
  })

  it.runIf(canBind)('is named with the path of the store', () => {
    const [state, disk] = ['orchub-state-', 'orchub-disk-'].map((name) => mkdtempSync(join(tmpdir(), name)))
    try {
      const configFile = join(state!, 'orc.yaml')
      mkdirSync(join(disk!, 'there'))
      new DatabaseSync(join(disk!, 'there/old.db')).close()
      for (const store of ['new/and/deep/orc.db', 'there/orc.db', 'there/old.db']) {
        const file = join(disk!, store)
        writeFileSync(
          configFile,
          `agents: { Worker: {} }\nservice: { port: 0 }\nstore: { url: "sqlite:${file}" }\n`,
        )
        const home = { HOME: state!, ORC_HOME: state! }
        const { status, stderr } = orcIn(BIND, disk!, `serve --config ${configFile}`, home)
        expect(stderr, store).toContain(`${file} cannot be written: the file system is read-only`)
        expect(stderr).toContain('to a writable place')
        expect(status).not.toBe(0)
      }
    } finally {
      for (const folder of [state, disk]) rmSync(folder!, { recursive: true })
    }
  })

  it.runIf(canBind)('is named with the folder for the workspaces of a run', () => {
    const state = mkdtempSync(join(tmpdir(), 'orchub-state-'))
    try {
      writeFileSync(join(team.folder, 'plan.yaml'), 'agents: { a: { command: "true" } }\n')
      writeFileSync(team.configFile, 'agents: { Master: {} }\nservice: { port: 0 }\n')
      const args = `run plan.yaml --config ${team.configFile}`
      const { status, stderr } = orcIn(BIND, team.folder, args, { HOME: state, ORC_HOME: state })
      expect(stderr).toMatch(/Cannot create a folder for the run.*: EROFS: read-only file system/)
      expect(status).toBe(1)
    } finally {
      rmSync(state, { recursive: true })
    }
  })
})

describe('a line that is too long for the terminal', () => {
  it('continues below its last column', () => {
    expect(wrapped('  audit  all that was said and done', 24)).toBe(
      '  audit  all that was\n         said and done',
    )
  })

  it('continues below its beginning if the last column begins too far right', () => {
    expect(wrapped('  a-rather-long-name  what it does', 24)).toBe('  a-rather-long-name\n      what it does')
  })

  it('stays in its column if there is enough room', () => {
    const line = '  workspace create WORKSPACE  make the folder of an agent'
    expect(wrapped(line, 52)).toBe(
      '  workspace create WORKSPACE  make the folder of an\n                              agent',
    )
  })

  it('ignores color codes, and leaves lines alone that fit or have no room', () => {
    const dim = '\x1b[2mtwenty-four places, dim.\x1b[0m'
    expect(wrapped(dim, 24)).toBe(dim)
    expect(wrapped('one two three', 5)).toBe('one two three')
  })
})
