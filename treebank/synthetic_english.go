package treebank

// The synthetic treebank's English, with these symbols:
//
//	S sentence, NP noun phrase, NB noun with modifiers, VP verb phrase, PP prepositional phrase, RC relative clause,
//	CO "and" with what follows it, SB clause below a verb such as "says";
//	DT determiner, JJ adjective, NN noun, PN name or pronoun, VT, VI, VC verb (transitive, intransitive, with a clause),
//	MD auxiliary, RB adverb, IN preposition, CC conjunction, WH relative word or conjunction.
//
// What depends on the parent: subjects are lighter than objects; nothing is piled up inside what is piled up already;
// "and" joins like with like; pronouns have case; no auxiliary stands below an auxiliary.

// englishRules has a line for each symbol and parent: X < P: L R weight, .... The parent * is every other one.
const englishRules = `
ROOT: S 97, NP 2, VP 1

S < ROOT: PN VP 22, NP VP 50, NP VI 3, PN VI 2, S CO 8, PP S 8, RB S 7
S < SB:   PN VP 46, NP VP 40, NP VI 6, PN VI 8
S < CO:   PN VP 34, NP VP 48, NP VI 9, PN VI 9
S < *:    PN VP 26, NP VP 66, NP VI 7, PN VI 1

NP < S:    DT NN 50, DT NB 26, JJ NN 6, NP PP 10, NP RC 3, NP CO 2, PN CO 3
NP < VP:   DT NN 22, DT NB 46, JJ NN 8, NP PP 10, NP RC 8, NP CO 5, PN CO 1
NP < PP:   DT NN 60, DT NB 24, JJ NN 14, NP PP 2
NP < NP:   DT NN 70, DT NB 26, JJ NN 4
NP < ROOT: DT NB 60, NP PP 25, NP CO 15
NP < *:    DT NN 55, DT NB 37, JJ NN 8

NB < NP: JJ NN 56, JJ NB 10, NN NN 10, NN PP 16, NN RC 8
NB < *:  JJ NN 48, NN NN 30, NN PP 22

VP < S:    VT NP 38, VT PN 5, VI PP 12, VI RB 4, MD VP 13, MD VI 2, VP PP 9, VC SB 9, VP CO 5, RB VP 3
VP < VP:   VT NP 52, VT PN 14, VI PP 20, VI RB 6, VC SB 6, MD VP 2
VP < RC:   VT NP 46, VT PN 18, VI PP 20, VI RB 6, MD VP 10
VP < CO:   VT NP 52, VT PN 18, VI RB 12, VI PP 18
VP < ROOT: VT NP 70, VT PN 10, VP PP 20
VP < *:    VT NP 46, VT PN 14, VI PP 18, MD VP 12, VP PP 10

PP < NP: IN NP 92, IN PN 8
PP < VP: IN NP 80, IN PN 20
PP < *:  IN NP 88, IN PN 12

RC < NB: WH VP 72, WH VI 28
RC < *:  WH VP 88, WH VI 12

CO < NP: CC NP 70, CC PN 30
CO < VP: CC VP 76, CC VI 24
CO < *:  CC S 100

SB < *: WH S 72, NP VP 12, PN VP 12, PN VI 4
`

// englishWords has a line for each preterminal and parent: t < X: words by falling frequency. The k-th word has the
// weight 1/(k+2).
const englishWords = `
DT < *: the a every this some no that each

JJ < NB: old small young big new green quiet lost clever light painted cold strange heavy happy dark brave round
JJ < *:  my their another our your old its

NN < NP: dog man woman house child garden book cat letter king teacher river box town well horse bird road plan
         street doctor tree story cut ship cold thought light
NN < *:  man dog house woman book child letter garden box cat river king plan teacher road town bird story horse
         street well ship light doctor tree felt thought set

PN < S:  he she they anna peter it we maria everyone tom john
PN < VP: him her them anna it us peter everything maria tom john
PN < PP: them paris him anna london her peter us rome maria
PN < CO: anna peter maria tom john rose
PN < SB: she he they it anna we john peter
PN < *:  anna peter maria john tom rose

VT < *: found liked made helped painted carried followed watched lost left met built sold read loved cut opened hit set
        cleaned

VI < S:  slept arrived left waited laughed walked vanished lived danced
VI < VP: walked lived stood waited sat played travelled slept danced arrived
VI < *:  slept left laughed waited walked danced arrived

VC < *: said thought believed hoped felt heard

MD < *: had has soon

RB < S:  yesterday then often today finally here
RB < *:  often quickly slowly never here again well today

IN < *: in of with on near from by to under for behind through round

CC < *: and or but

WH < RC: who that which
WH < *:  that whether if
`
