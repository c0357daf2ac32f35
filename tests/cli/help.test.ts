import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EXIT_CODES } from '../../src/cli/exit-code.ts'
import { BUILT_IN_COMMANDS } from '../../src/model/command.ts'
import { createTeamFolder, type TeamFolder } from './orc.ts'

let team: TeamFolder
let names: string[]

beforeAll(async () => {
  team = createTeamFolder()
  const [overview] = (await team.orc('help --json')).json() as { commands: { name: string }[] }[]
  names = overview!.commands.map(({ name }) => name)
})
afterAll(() => team.close())

describe('orc help', () => {
  it('shows every command, the environment and the exit codes', async () => {
    const { out, code } = await team.orc('help')
    expect(code).toBe(0)
    for (const type of Object.keys(BUILT_IN_COMMANDS))
      expect(out).toContain(`  ${type.replaceAll('_', '-')} `)
    for (const name of names) expect(out).toContain(name)
    for (const [number, meaning] of Object.values(EXIT_CODES)) expect(out).toContain(`${number}  ${meaning}`)
    expect((await team.orc('--help')).out).toBe(out)
    expect((await team.orc([])).out).toBe(out)
  })

  it('shows of each command its usage, its options and examples that are this command', async () => {
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
  })

  it('shows one command, and says what was meant', async () => {
    expect((await team.orc('help audit verify')).out).toMatch(/^Usage: orc audit verify \[FILE\]/)
    expect((await team.orc('help send-message')).out).toContain('--priority low|normal|high|urgent')
    expect((await team.orc('help adit')).err).toContain('Did you mean audit?')
  })

  it('prints the version of the package', async () => {
    const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'))
    expect((await team.orc('--version')).out).toBe(`${version}\n`)
  })

  it('says what was meant by an unknown option', async () => {
    const ran = await team.orc('audit --sinc 10m')
    expect(ran).toMatchObject({ code: 2, err: expect.stringContaining('Did you mean --since?') })
    expect((await team.orc('status now')).err).toContain('"now" is too much')
    expect((await team.orc('audit verfy')).err).toContain('Did you mean audit verify?')
    expect((await team.orc('audit --follow=yes')).err).toContain('takes no value')
    expect((await team.orc('status --token x')).err).toContain('never goes on the command line')
  })
})

describe('docs/cli.md', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/cli.md'), 'utf8')

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
    for (const name of names) expect(out).toContain(name.split(' ').at(-1))
    if (!isInstalled(shell)) return
    const file = join(team.folder, `orc.${shell}`)
    writeFileSync(file, out)
    const checked = spawnSync(shell, ['-n', file], { encoding: 'utf8' })
    expect(checked).toMatchObject({ status: 0, stderr: '' })
  })

  it('offers commands, options, values and agents in bash', async () => {
    const cases: [typed: string[], offered: string[]][] = [
      [['send'], ['send-message']],
      [['audit', 'v'], ['verify']],
      [['audit', '--cl'], ['--class']],
      [
        ['audit', '--class', 'p'],
        ['public', 'private'],
      ],
      [
        ['send-message', '--to', ''],
        ['Master', 'Worker', 'Spy'],
      ],
      [['send-message', '--priority', 'u'], ['urgent']],
      [['rules', 'explain', 'S'], ['Spy']],
    ]
    const tries = cases.map(([typed]) => {
      const words = ['orc', ...typed].map((word) => `'${word}'`).join(' ')
      return `COMP_WORDS=(${words}); COMP_CWORD=${typed.length}; _orc; echo "\${COMPREPLY[*]}"`
    })
    const { out, err } = await team.shell(['source <(orc completion bash)', ...tries].join('\n'))
    expect(err).toBe('')
    expect(out.trimEnd().split('\n')).toEqual(cases.map(([, offered]) => offered.join(' ')))
  })

  it('says which shells there are', async () => {
    expect((await team.orc('completion tcsh')).err).toContain('bash, zsh, fish')
  })
})
