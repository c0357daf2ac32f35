import { describe, expect, it } from 'vitest'
import { openKillableTeam } from '../harness/killable-team.ts'
import { createModelScript } from '../harness/model-script.ts'

describe('a team with agents that cannot start', () => {
  it('reports the reason for each, and the others work', async () => {
    const sh = (line: string) => ({
      ...{ program: 'any' as const, runtime: 'tmux' as const },
      with: { command: ['sh', '-c', line], patterns: { idle: '> $' } },
    })
    const team = await openKillableTeam({
      programs: { Alice: 'codex' },
      play: createModelScript().play,
      others: {
        Ghost: { program: 'codex', runtime: 'tmux', with: { command: 'no-such-program-anywhere' } },
        Quitter: sh('echo I cannot work here; exit 3'),
      },
    })
    try {
      await team.becomes('Ghost', 'error')
      await team.reaches(await team.send('Alice', 'are you well?'), 'read')
      const lastOf = (name: string) =>
        team.audit().findLast(({ type, actor }) => type === 'session.changed' && actor === name)?.text ?? ''
      await team.until('the end of Quitter is told', () => lastOf('Quitter').includes('exited with'))
      expect(lastOf('Ghost')).toMatch(/no-such-program-anywhere.*npm install/s)
      expect(lastOf('Quitter')).toMatch(/exited with 3.*I cannot work here/s)
      const { agents } = await team.client.agents()
      expect(agents.find(({ name }) => name === 'Quitter')!.session).toMatch(/exited|error/)
    } finally {
      await team.close()
    }
  })
})
