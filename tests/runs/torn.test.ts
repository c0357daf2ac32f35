import { afterEach, expect, it } from 'vitest'
import { MADE, openRunTeam, type RunTeam } from './harness.ts'

let team: RunTeam
afterEach(() => team.close())

it('reports a status.json that is incomplete when its agent ends', async () => {
  team = await openRunTeam()
  const said = `echo '{\\"state\\": \\"running\\"}' > status.json; sleep 0.3; echo '{\\"state' > status.json; ${MADE} x > outbox/x`
  const { id } = await team.run(`agents: { a: { command: "${said}", retries: 0 } }`)
  expect((await team.node(id, 'a')).reason).toContain('status.json is not complete JSON')
})
