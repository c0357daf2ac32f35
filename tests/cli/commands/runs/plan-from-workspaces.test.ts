import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { definePlan } from '../../../runs/define-plan.ts'
import { createTeamFolder } from '../../orc.ts'

const MANIFEST = {
  depends_on: [{ agent: 'collector', outputs: ['outbox/data.json'], copy_to: 'inbox/source_data/' }],
  wait_for: ['collector', 'checker'],
}

/** Three workspaces made by hand, without a service. */
function open() {
  const team = createTeamFolder()
  onTestFinished(() => team.close())
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(team.folder, path)), { recursive: true })
    writeFileSync(join(team.folder, path), text)
  }
  for (const name of ['analyst', 'checker', 'collector']) {
    write(`work/${name}/status.json`, '{"state": "pending"}')
    for (const part of ['inbox', 'outbox']) mkdirSync(join(team.folder, 'work', name, part))
  }
  write('work/analyst/inbox/dependencies.json', JSON.stringify(MANIFEST))
  write(
    'work/analyst/inbox/instructions.md',
    '# Task: Look\n\n## Objective\nFind the trend.\n\n## Success Criteria\n- [ ] A number\n\n' +
      '## Output Expectations\n- A table with a header\n- No PDF\n- Include summary in `outbox/summary.md`\n',
  )
  return { ...team, write }
}

it('reads a plan back from the dependencies.json of existing workspaces, without a service (S4.13)', async () => {
  const team = open()
  const shown = await team.orc('plan --from work')
  expect(shown).toMatchObject({ code: 0, err: expect.stringContaining('Nothing runs yet') })
  await team.orc('plan --from work -o plan.yaml')
  expect(readFileSync(join(team.folder, 'plan.yaml'), 'utf8')).toBe(shown.out)
  expect((await team.orc('run plan.yaml --dry-run')).out).toContain('2. analyst')
  const { parse } = await import('yaml')
  const analyst = definePlan(parse(shown.out)).agents.find(({ name }) => name === 'analyst')!
  expect(analyst.dependsOn).toMatchObject([
    { agent: 'collector', outputs: ['outbox/data.json'], copyTo: 'inbox/source_data' },
    { agent: 'checker', outputs: [] },
  ])
  expect(shown.out).toContain('collector: {}')
  expect(analyst.instructions).toMatchObject({
    objective: 'Find the trend.',
    successCriteria: ['A number'],
    outputExpectations: ['A table with a header', 'No PDF'],
  })
})

it('reports invalid JSON, a link, a cycle and a missing workspace', async () => {
  const team = open()
  team.write('work/checker/inbox/dependencies.json', '{"wait_for": ["analyst"]}')
  const circle = await team.orc('plan --from work --json')
  expect(circle.code).toBe(1)
  expect(circle.json()).toMatchObject([
    { problems: [{ message: expect.stringMatching(/waits for itself/) }] },
  ])
  team.write('work/checker/inbox/dependencies.json', '{')
  const broken = await team.orc('plan --from work')
  expect(broken.err).toContain('checker/inbox/dependencies.json: is not JSON')
  symlinkSync('/etc/passwd', join(team.folder, 'work/collector/inbox/dependencies.json'))
  expect((await team.orc('plan --from work')).err).toContain('symbolic link')
  expect((await team.orc('plan --from .')).err).toContain('no workspace')
  expect((await team.orc('plan a goal --from work')).code).toBe(2)
})
