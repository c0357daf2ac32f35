import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Client } from '../../client/client.ts'

/** The second half of the demo: agents that are shell commands and hand files to each other. One of them needs two attempts. */
const PLAN = String.raw`name: A sum by files
agents:
  numbers:
    command: |
      printf '15\n27\n' > outbox/numbers.txt
      echo 'Chose two numbers.' > outbox/summary.md
  sum:
    command: |
      echo $(($(paste -sd+ inbox/numbers/numbers.txt))) > outbox/sum.txt
      echo 'Added them up.' > outbox/summary.md
    checks: [{ name: a number, command: "grep -qx '[0-9]*' outbox/sum.txt" }]
    depends_on: [numbers]
  proof:
    command: |
      if ! test -e workspace/tried; then touch workspace/tried; exit 1; fi
      echo right > outbox/verdict.txt
      echo 'Proved it, at the second attempt.' > outbox/summary.md
    depends_on: [numbers]
  letter:
    command: |
      echo "The sum is $(cat inbox/sum/sum.txt), and that is $(cat inbox/proof/verdict.txt)." > outbox/letter.txt
      cp outbox/letter.txt outbox/summary.md
    depends_on: [sum, proof]
`

/** Gives the file of the plan, for whoever wants to run it again. */
export async function startDemoPlan(client: Client, stateFolder: string): Promise<string> {
  const folder = join(stateFolder, 'plan')
  const file = join(folder, 'plan.yaml')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  writeFileSync(file, PLAN)
  await client.startRun({ plan: PLAN, folder })
  return file
}
