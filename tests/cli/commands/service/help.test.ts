import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { EXIT_CODES } from '../../../../src/cli/errors.ts'
import { ACKNOWLEDGE_MS } from '../../../../src/messages/mailboxes.ts'
import { BUILT_IN_COMMANDS } from '../../../../src/protocol/command.ts'
import { sharedTeam } from '../../orc.ts'

const EVERYDAY = 'init up down status open send inbox approve reject ask run logs attach why'.split(' ')
const NOUNS = 'agent audit github message rules run service task token webhook workspace'.split(' ')

let names: string[]

const team = sharedTeam()

beforeAll(async () => {
  const [overview] = (await team.orc('help --json')).json() as { commands: { name: string }[] }[]
  names = overview!.commands.map(({ name }) => name)
})

describe('orc help', () => {
  it('shows every command, the environment and the exit codes', async () => {
    const { out, code } = await team.orc('help')
    expect(code).toBe(0)
    for (const type of Object.keys(BUILT_IN_COMMANDS))
      expect(out).toContain(`  ${type.replaceAll('_', '-')} `)
    for (const name of names) expect(out).toContain(name)
    for (const [number, meaning] of Object.values(EXIT_CODES)) expect(out).toContain(`${number}  ${meaning}`)
    expect((await team.orc('--help')).out).toBe(out)
    expect((await team.orc('help --all')).out).toBe(out)
  })

  it('fits the everyday commands on one screen of 24 lines by 80 columns', async () => {
    const { out, code } = await team.orc([])
    expect(code).toBe(0)
    const lines = out.trimEnd().split('\n')
    expect(lines.length).toBeLessThanOrEqual(24)
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(80)
    for (const name of EVERYDAY) expect(out).toContain(`  orc ${name} `)
    for (const noun of NOUNS) expect(out).toContain(` ${noun}`)
  })

  it.each(NOUNS)(
    'lists the verbs of %s',
    async (noun) => {
      const { out, code } = await team.orc(`help ${noun}`)
      expect(code).toBe(0)
      const verbs = names.filter((name) => name.startsWith(`${noun} `))
      expect(verbs.length).toBeGreaterThan(0)
      for (const name of verbs) expect(out).toContain(`  ${name} `)
      if (['agent', 'task', 'service', 'webhook'].includes(noun)) expect((await team.orc(noun)).out).toBe(out)
    },
    120_000,
  )

  it('shows usage, options and matching examples of each command', async () => {
    expect(names.length).toBeGreaterThan(30)
    const all = await Promise.all(names.map((name) => team.orc([...name.split(' '), '--help'])))
    for (const [index, { code, out }] of all.entries()) {
      const name = names[index]!
      expect(code).toBe(0)
      expect(out).toMatch(new RegExp(`^Usage: orc ${name}\\b`))
      expect(out).toContain('--json')
      expect(out).toMatch(
        new RegExp(`Examples?:\\n(.*\\n)*.*orc ${name.replace(/^version$/, '--version')}\\b`),
      )
    }
  }, 120_000)

  it('shows one command, and suggests the nearest for an unknown one', async () => {
    expect((await team.orc('help agent list')).out).toMatch(/^Usage: orc list-agents /)
    expect((await team.orc('help audit verify')).out).toMatch(/^Usage: orc audit verify \[FILE\]/)
    expect((await team.orc('help send-message')).out).toContain('--priority low|normal|high|urgent')
    expect((await team.orc('help adit')).err).toContain('Did you mean audit?')
  })

  it('shows options as people type them, and long lists of values separately', async () => {
    const update = (await team.orc('help update-status')).out
    expect(update).toContain('--current-task CURRENT_TASK ')
    expect(update).toContain('--status working "Adding numbers"')
    expect(update).not.toContain('--current_task')
    expect((await team.orc('help request-action')).out).toMatch(
      /--action ACTION {2,}spawn_agent, terminate_agent/,
    )
    expect((await team.orc('mailbox-check --help')).out).toContain(
      `delivered again after ${ACKNOWLEDGE_MS / 1000} s`,
    )
  })

  it('prints one command as JSON', async () => {
    const [verb] = (await team.orc('help audit export --json')).json()
    expect(verb).toMatchObject({ name: 'audit export', usage: 'orc audit export [options]' })
    expect((await team.orc('audit export --help --json')).json()).toEqual([verb])
    const [type] = (await team.orc('send-message --help --json')).json()
    expect(type).toMatchObject({
      name: 'send-message',
      body: 'content',
      schema: { required: ['to', 'content'] },
    })
    expect((await team.orc('help send_message --json')).json()).toEqual([type])
  })

  it('prints the version of the package', async () => {
    const { version } = JSON.parse(
      readFileSync(join(import.meta.dirname, '../../../../package.json'), 'utf8'),
    )
    expect((await team.orc('--version')).out).toBe(`${version}\n`)
  })

  it('suggests the nearest option', async () => {
    await team.fails('audit --sinc 10m', 2, 'Did you mean --since?')
    expect((await team.orc('status now')).err).toContain('Unexpected argument "now"')
    expect((await team.orc('audit verfy')).err).toContain('Did you mean audit verify?')
    expect((await team.orc('audit --follow=yes')).err).toContain('takes no value')
    expect((await team.orc('status --token x')).err).toContain('not accepted on the command line')
  })
})

describe('docs/cli.md', () => {
  const page = readFileSync(join(import.meta.dirname, '../../../../docs/cli.md'), 'utf8')

  it('has every command and every exit code', () => {
    for (const name of names) expect(page).toContain(`orc ${name}`)
    for (const [number, meaning] of Object.values(EXIT_CODES))
      expect(page).toContain(`| ${number} | ${meaning} |`)
  })
})

describe('completion', () => {
  const isInstalled = (shell: string) => spawnSync(shell, ['--version']).status === 0

  it.each(['bash', 'zsh', 'fish'])('for %s is a script the shell accepts', async (shell) => {
    const { out, code } = await team.orc(`completion ${shell}`)
    expect(code).toBe(0)
    expect(out).toContain('orc completion words -- ')
    if (!isInstalled(shell)) return
    const file = join(team.folder, `orc.${shell}`)
    writeFileSync(file, out)
    const checked = spawnSync(shell, ['-n', file], { encoding: 'utf8' })
    expect(checked).toMatchObject({ status: 0, stderr: '' })
  })

  it('offers commands, options, values and agents in bash', async () => {
    const cases = [
      ['send', 'send send-message'],
      ['audit v', 'verify'],
      ['audit --cl', '--class'],
      ['audit --class p', 'public private'],
      ['send-message --to ', 'Master Worker Spy'],
      ['send-message --priority u', 'urgent'],
      ['rules explain S', 'Spy'],
      ['rules explain Master --json Spy pause', 'pause_session'],
      ['token ', 'create list revoke Master Worker Spy'],
      ['token revoke W', 'Worker'],
      ['rules explain --config orc.yaml Master Spy b', 'broadcast'],
      ['update-status --cur', '--current-task'],
      ['workspace c', 'create collect'],
      ['workspace create x --template a', 'analysis'],
      ['run orc.y', 'orc.yaml'],
      ['run ca', 'cancel'],
      ['ag', 'agent'],
      ['agent st', 'start stop'],
      ['agent start S', 'Spy'],
      ['spawn S', 'Spy'],
      ['task del', 'delegate'],
      ['task delegate --ju', '--judge'],
    ] as const
    const tries = cases.map(([typed]) => {
      const words = ['orc', ...typed.split(' ')].map((word) => `'${word}'`)
      return `COMP_WORDS=(${words.join(' ')}); COMP_CWORD=${words.length - 1}; _orc; echo "\${COMPREPLY[*]}"`
    })
    const { out, err } = await team.shell(['source <(orc completion bash)', ...tries].join('\n'))
    expect(err).toBe('')
    expect(out.trimEnd().split('\n')).toEqual(cases.map(([, offered]) => offered))
  }, 120_000)

  it('offers every command with its summary, and file names by a colon', async () => {
    const offered = (await team.orc(['completion', 'words', '--', ''])).out
    for (const name of names) expect(offered).toMatch(new RegExp(`^${name.split(' ')[0]}\\t`, 'm'))
    expect((await team.orc(['completion', 'words', '--', 'agent', 'st'])).out).toMatch(
      /^start\tstart an agent.*\nstop\tstop an agent/,
    )
    expect((await team.orc(['completion', 'words', '--', 'run', 'pla'])).out).toBe(':\n')
  })

  it('refuses --json for a script, and lists agents as JSON', async () => {
    const refused = await team.orc('completion bash --json')
    expect(refused).toMatchObject({ code: 2, err: '' })
    expect(refused.json()).toMatchObject([{ code: 'USAGE' }])
    expect((await team.orc('completion agents --json')).json()).toEqual(['Master', 'Worker', 'Spy'])
  })
})
