import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createTeamFolder, sharedTeam } from '../orc.ts'

const team = sharedTeam()

describe('orc rules', () => {
  it('shows rules and permissions with their lines', async () => {
    const { out, code } = await team.orc('rules')
    expect(code).toBe(0)
    expect(out).toContain('preset  mesh')
    expect(out).toMatch(/Spy → Master {2}spies do not write to masters \(line 7\)/)
    expect(out).toContain('Master  spawn_agent: ask (line 2)')
    expect(out).toContain("read_log: its own descendants' only")
    expect((await team.orc('rules show')).out).toBe(out)
    expect((await team.orc('rules --json')).json()).toMatchObject([
      { rules: { preset: 'mesh', forbid: [{ from: ['Spy'] }] } },
    ])
  })

  it('suggests the verb that was meant', async () => {
    const ran = await team.orc('rules expalin A B')
    expect(ran.code).toBe(2)
    expect(ran.err).toContain('explain')
  })
})

describe('orc rules explain', () => {
  it('names the rule that decides, its line and the reason, from the file', async () => {
    const { out } = await team.orc('rules explain Spy Master')
    expect(out).toMatch(
      /^deny {2}spies do not write to masters\n {2}decided by rules\.forbid\[0\] \(line 7\), in .*orc\.yaml/,
    )
    const [json] = (await team.orc('rules explain Master Worker --json')).json()
    expect(json).toMatchObject({ decision: { verdict: 'allow', rule: expect.stringContaining('preset') } })
  })

  it('explains actions, and knows their names', async () => {
    expect((await team.orc('rules explain Master Worker spawn_agent')).out).toMatch(/^ask /)
    expect((await team.orc('rules explain Worker Master spawn_agent')).out).toMatch(/^deny /)
    await team.fails('rules explain Worker Master spwan_agent', 2, 'Did you mean spawn_agent?')
  })

  it('asks the running service for the rules in force', async () => {
    const other = createTeamFolder('agents: { A: {}, B: {} }\n')
    try {
      await other.start()
      writeFileSync(other.configFile, 'agents: { A: {}, B: {} }\nrules: { preset: isolated }\n')
      expect((await other.orc('rules explain A B')).out).toMatch(/^allow [\s\S]*in the running service/)
      await other.stop()
      expect((await other.orc('rules explain A B')).out).toMatch(/^deny /)
    } finally {
      await other.close()
    }
  })
})

describe('orc rules check', () => {
  it('accepts a good file', async () => {
    expect(await team.orc('rules check')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^ok {2}.*3 agents\n$/),
    })
    const file = join(team.folder, 'one.yaml')
    writeFileSync(file, 'agents: { Alone: {} }\n')
    expect((await team.orc(['rules', 'check', file])).out).toMatch(/: 1 agent\n$/)
  })

  it('shows each mistake with its line, a caret and a hint', async () => {
    const file = join(team.folder, 'bad.yaml')
    writeFileSync(file, 'agents:\n  Master: {}\nrules:\n  forbid:\n    - { from: Mastr, to: Master }\n')
    const ran = await team.orc(['rules', 'check', file])
    expect(ran).toMatchObject({ code: 1, out: '' })
    expect(ran.err).toMatch(/bad\.yaml:5:\d+: .*There is no agent "Mastr"/)
    expect(ran.err).toMatch(/5 \| .*from: Mastr[\s\S]*\^/)
    expect(ran.err).toContain('hint: Did you mean "Master"?')
    const json = await team.orc(['rules', 'check', file, '--json'])
    expect(json).toMatchObject({ code: 1 })
    expect(json.json()).toMatchObject([{ ok: false, problems: [{ line: 5 }] }])
  })

  it('checks the settings of the runtimes too', async () => {
    const file = join(team.folder, 'script.yaml')
    writeFileSync(file, 'agents:\n  A: { runtime: scripted, with: { script: 7 } }\n')
    await team.fails(['rules', 'check', file], 1, 'script.yaml:2')
  })

  it('reports the same as serve', async () => {
    await team.fails(['serve', '--config', join(team.folder, 'bad.yaml')], 1, 'There is no agent "Mastr"')
  })
})

describe('orc agent prompt (S0.24, S1.16)', () => {
  it('teaches an agent its name, whom it may write to, and the commands', async () => {
    const { out, code } = await team.orc('prompt worker')
    expect(code).toBe(0)
    expect(out).toContain('You are Worker')
    expect(out).toContain('A person must approve messages to: Spy')
    for (const type of ['send_message', 'mailbox_check', 'update_status']) expect(out).toContain(type)
    expect((await team.orc('prompt Worker --json')).json()).toEqual([
      { agent: 'Worker', prompt: out.trimEnd() },
    ])
    expect((await team.orc('prompt Nobody')).code).toBe(7)
  })
})
